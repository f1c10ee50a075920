package safenet

import (
	"net/netip"
)

// notPublic are the blocks of IANA's registries of special-purpose addresses that are
// not globally reachable, and the addresses of metadata services outside of them. IPv6
// addresses outside of 2000::/3 are never public.
var notPublic = parsePrefixes(
	"0.0.0.0/8",         // this network
	"10.0.0.0/8",        // private
	"100.64.0.0/10",     // carrier-grade NAT
	"127.0.0.0/8",       // loopback
	"168.63.129.16/32",  // Azure's platform service
	"169.254.0.0/16",    // link-local, metadata of most clouds
	"172.16.0.0/12",     // private
	"192.0.0.0/24",      // protocol assignments, metadata of Oracle's cloud
	"192.0.2.0/24",      // documentation
	"192.88.99.0/24",    // 6to4 relays
	"192.168.0.0/16",    // private
	"198.18.0.0/15",     // benchmarks
	"198.51.100.0/24",   // documentation
	"203.0.113.0/24",    // documentation
	"224.0.0.0/4",       // multicast
	"240.0.0.0/4",       // reserved, broadcast
	"2001::/23",         // protocol assignments, Teredo
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4, contains an IPv4 address
	"3fff::/20",         // documentation
	"2620:4f:8000::/48", // AS112
)

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

func parsePrefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// IsPublic reports whether an address is globally reachable. An IPv4 address inside an
// IPv6 address (mapped, or of a NAT64 gateway) is checked itself.
func IsPublic(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return false
	}
	for _, block := range notPublic {
		if block.Contains(a) {
			return false
		}
	}
	return true
}
