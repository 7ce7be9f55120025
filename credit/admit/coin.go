package admit

// coin says yes for a share of its throws (splitmix64: Steele, Lea and Flood, 2014). It is no even pattern, since callers make patterns of their own:
// of two methods that are called in turn, every second one refused would be always the same. What it is made with is its seed.
type coin uint64

// within reports whether a throw falls within the share, 0 to 1.
func (c *coin) within(share float64) bool {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) < share*(1<<53)
}
