// Package pcapng encodes the blocks of a capture file (draft-ietf-opsawg-pcapng): a section, its interface, packets and
// statistics. It appends to the caller's buffer, allocates nothing beyond that, and knows nothing of files.
//
// github.com/gopacket/gopacket has a writer too, which builds its options anew for each packet and links hundreds of protocols into
// whoever uses it. Here it is the reader of the tests: what it cannot read back is not written.
package pcapng
