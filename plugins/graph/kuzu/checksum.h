// CRC-32C, with which the log finds damage.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace tea {

// The tables of the slicing-by-8 algorithm.
constexpr auto checksumTables = [] {
    std::array<std::array<uint32_t, 256>, 8> tables{};
    for (uint32_t i = 0; i < 256; i++) {
        auto sum = i;
        for (auto bit = 0; bit < 8; bit++) {
            sum = (sum >> 1) ^ (sum & 1 ? 0x82f63b78 : 0);
        }
        tables[0][i] = sum;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (auto t = 1; t < 8; t++) {
            tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
        }
    }
    return tables;
}();

// checksum continues the checksum before with size bytes of data.
inline uint32_t checksum(uint32_t before, const void* data, size_t size) {
    auto& t = checksumTables;
    auto at = static_cast<const uint8_t*>(data);
    auto sum = ~before;
    for (; size >= 8; at += 8, size -= 8) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low ^= sum;
        sum = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^ t[3][high & 0xff] ^ t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^ t[0][high >> 24];
    }
    for (; size > 0; at++, size--) {
        sum = (sum >> 8) ^ t[0][(sum ^ *at) & 0xff];
    }
    return ~sum;
}

} // namespace tea
