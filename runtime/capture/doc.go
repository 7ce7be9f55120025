// Package capture writes what a port receives and sends into a file for Wireshark and tcpdump, which do not see AF_XDP traffic themselves:
//
//	tap, err := capture.Create("calls.pcapng", capture.Config{})
//	ep, err := sw.Open(sw.EndpointConfig{Interface: "eth1", WrapPort: tap.Wrap})
//	...
//	err = ep.Close() // the file is complete
//
// It is middleware around [dispatcher.Port]; an endpoint without it does not pay for it. With it, the loop copies each packet into a ring of bounded size, and
// never waits: a goroutine writes the file, and what finds the ring full is not captured but counted, there and in the file.
//
// The file has packets as the port's owner sees them. Ethernet is left out, and the headers of IP and UDP are made up of the addresses. A packet stands where the
// loop met it and has the time of its arrival, so stamps may go back by the age of a packet. These marks are in it:
//   - a packet that the port refused to send has a comment that begins with "dropped";
//   - the first packet after a gap has a drop count, and a comment that says why: not captured, or lost at reception;
//   - when packets were lost at reception, and at the end, there are the interface's statistics.
package capture
