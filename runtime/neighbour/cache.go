//go:build linux

package neighbour

// Cache remembers the last answer of a table, for one user: most packets go where the one before went. It forgets
// as soon as the table changes. Not safe for concurrent use.
type Cache struct {
	table *Table
	view  *view
	ip    [16]byte
	entry *neighbour
	hop   Hop
}

// NewCache returns a cache in front of the table.
func (t *Table) NewCache() Cache { return Cache{table: t} }

// Lookup is Table.Lookup.
func (c *Cache) Lookup(ip [16]byte) (Hop, bool) {
	v := c.table.view.Load()
	if v == c.view && ip == c.ip {
		c.entry.use()
		return c.hop, true
	}
	hop, entry, ok := v.lookup(ip)
	if ok {
		c.view, c.ip, c.entry, c.hop = v, ip, entry, hop
	}
	return hop, ok
}
