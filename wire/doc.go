// Package wire is the format: Ethernet, IPv4, IPv6 and UDP as views over bytes, the packet header, and one file per message.
//
// Nothing here keeps state, reads a clock or allocates. Parsing and emission are separate: ParseX checks every
// length once at the door and returns a value whose slices alias the input; Append writes and Length says how
// much it will write. All integers are big endian. The byte map is in ARCHITECTURE.md, section 2.
package wire
