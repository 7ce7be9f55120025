//go:build linux

package doctor

// zeroCopySince says from which kernel on a driver has zero-copy, as published; the zero version is never so far. It is a hint, for a tree that cannot be
// tried: the driver's own word and a trial are better.
var zeroCopySince = map[string]version{
	"i40e":       {4, 20},
	"ixgbe":      {4, 20},
	"mlx5_core":  {5, 3},
	"ice":        {5, 5},
	"stmmac":     {5, 13},
	"igc":        {5, 14},
	"nfp":        {5, 18},
	"gve":        {6, 4},
	"igb":        {6, 14},
	"idpf":       {6, 18},
	"virtio_net": {6, 18},

	"ena": {}, "bnxt_en": {}, "mana": {}, "veth": {}, "tun": {},
}

// hint says what is known of a driver under a kernel.
func hint(driver string, kernel version) (zeroCopy, known bool) {
	since, known := zeroCopySince[driver]
	return known && since != version{} && !kernel.before(since), known
}
