//! What was declared about a model, in the certificate: repeated, never checked beyond its form.

use super::{Certificate, Contact, Registry};
use crate::schema::declared::{Declared, PRODUCT};

pub(super) fn registry(d: &Declared) -> Registry {
    Registry {
        name: d.name.clone(),
        curators: d.curators.clone(),
        description: d.description.clone(),
        intended_use: d.intended_use.clone(),
        product_type: PRODUCT.into(),
        region: d.region.clone(),
        sector: d.sector.clone(),
        publication_date: d.publication_date.clone(),
    }
}

pub(super) fn contact(d: &Declared) -> Contact {
    Contact { contact: d.contact.clone(), licence: d.licence.clone(), expiry: d.expiry.clone(), revision: d.revision.clone() }
}
impl Certificate {
    /// Puts this in the place of what was declared.
    pub(crate) fn declare(&mut self, declared: Declared) {
        self.registry = registry(&declared);
        self.contact = contact(&declared);
        self.utility.statement = declared.utility;
        self.identity.date = declared.date;
    }

    /// What was declared when the certificate was written.
    pub fn declared(&self) -> Declared {
        let (r, c) = (self.registry.clone(), self.contact.clone());
        Declared {
            name: r.name,
            curators: r.curators,
            description: r.description,
            intended_use: r.intended_use,
            region: r.region,
            sector: r.sector,
            publication_date: r.publication_date,
            date: self.identity.date.clone(),
            contact: c.contact,
            licence: c.licence,
            expiry: c.expiry,
            revision: c.revision,
            utility: self.utility.statement.clone(),
        }
    }
}
