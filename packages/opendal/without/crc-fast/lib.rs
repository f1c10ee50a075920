//! Replaces crc-fast, whose tables for all algorithms are 650 KB of the module.
//! opendal-service-s3 uses it for the setting checksum_algorithm, which is not set.

pub enum CrcAlgorithm {
    Crc32Iscsi,
}

pub struct Digest;

impl Digest {
    pub fn new(_: CrcAlgorithm) -> Self {
        unreachable!("no checksum_algorithm is set")
    }

    pub fn update(&mut self, _: &[u8]) {}

    pub fn finalize(&self) -> u64 {
        0
    }
}
