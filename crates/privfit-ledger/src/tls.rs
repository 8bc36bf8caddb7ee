//! TLS for the driver of PostgreSQL: rustls, with the roots of the system or of a file, and the name of the server checked.

use super::address::Roots;
use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use privfit_data::error::{Error, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{TlsConnector, client};

/// Largest file of roots; that of a whole system has a quarter of a megabyte.
const LARGEST: u64 = 16 << 20;

/// Makes connections that are encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    patience: Duration,
}

impl Tls {
    /// Trusts these roots, and waits so long for a server to answer.
    pub(super) fn new(roots: &Roots, patience: Duration) -> Result<Tls> {
        let certificates = match roots {
            Roots::System => rustls_native_certs::load_native_certs().certs,
            Roots::File(path) => {
                let wrong = |why: &dyn std::fmt::Display| {
                    Error::misuse(format!("cannot read the roots {}: {why}; give certificates in PEM", path.display()))
                };
                let bytes = privfit_data::small_file::read(path, LARGEST).map_err(|e| wrong(&e))?;
                let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
                all.map_err(|_| wrong(&"it is not PEM"))?
            }
        };
        let mut store = RootCertStore::empty();
        let (taken, _) = store.add_parsable_certificates(certificates);
        if taken == 0 {
            return Err(Error::misuse(
                "there is no root certificate to trust: add one to the system (package ca-certificates), or give ?sslrootcert=FILE in the address",
            ));
        }
        let versions = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| Error::misuse("this build has no version of TLS: build it with one"))?;
        let mut config = versions.with_root_certificates(store).with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)), patience })
    }
}

/// One connection to be made.
pub(super) struct Dial {
    tls: Tls,
    server: ServerName<'static>,
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Dial;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, server: &str) -> std::result::Result<Dial, Self::Error> {
        Ok(Dial { tls: self.clone(), server: ServerName::try_from(server.to_string())? })
    }
}

impl TlsConnect<Socket> for Dial {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            // A server that takes a connection and then says nothing must not hold a job for ever.
            match tokio::time::timeout(self.tls.patience, self.tls.connector.connect(self.server, socket)).await {
                Ok(stream) => Ok(Stream(stream?)),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        })
    }
}

/// An encrypted connection.
pub(super) struct Stream(client::TlsStream<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
