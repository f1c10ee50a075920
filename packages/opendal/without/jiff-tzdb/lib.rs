//! Replaces the database of time zones, 200 KB of the module: signatures and the
//! headers of HTTP are in UTC.

pub static VERSION: Option<&str> = None;

pub type TimeZoneNameIter = std::iter::Empty<&'static str>;

pub fn get(_: &str) -> Option<(&'static str, &'static [u8])> {
    None
}

pub fn available() -> TimeZoneNameIter {
    std::iter::empty()
}
