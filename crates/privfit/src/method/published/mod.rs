//! Methods as published. What the papers print is kept apart from what the library trains with: wrong and loose constants stay
//! as they were printed, so that tests can show what is wrong with them and comparisons can run them for what they are.

pub mod printed;
