//go:build linux

package bpf

import "fmt"

// Reason is why the program ended with a packet. Its numbers are the indexes of the program's counters.
type Reason uint32

// The reasons. The two Redirected ones are packets handed to a socket, all others went on to the kernel's own stack.
const (
	ReasonRedirected          = Reason(steerReasonREASON_REDIRECTED)           // to the socket, stamped
	ReasonRedirectedUnstamped = Reason(steerReasonREASON_REDIRECTED_UNSTAMPED) // to the socket, but the driver has no metadata
	ReasonNotIP               = Reason(steerReasonREASON_NOT_IP)               // ARP and other EtherTypes
	ReasonIPv6                = Reason(steerReasonREASON_IPV6)                 // IPv6 to an IPv4-mapped address
	ReasonVLAN                = Reason(steerReasonREASON_VLAN)                 // tagged once or more
	ReasonShort               = Reason(steerReasonREASON_SHORT)                // ends inside a header
	ReasonBadVersion          = Reason(steerReasonREASON_BAD_VERSION)          // EtherType and IP version disagree
	ReasonIPOptions           = Reason(steerReasonREASON_IP_OPTIONS)           // the IPv4 header is not 20 bytes
	ReasonFragment            = Reason(steerReasonREASON_FRAGMENT)             // first, middle or last
	ReasonNotUDP              = Reason(steerReasonREASON_NOT_UDP)              // another protocol
	ReasonBadLength           = Reason(steerReasonREASON_BAD_LENGTH)           // lengths contradict each other
	ReasonNoService           = Reason(steerReasonREASON_NO_SERVICE)           // UDP, for somebody else
	ReasonTooLong             = Reason(steerReasonREASON_TOO_LONG)             // ours, but no frame holds it
	ReasonNoSocket            = Reason(steerReasonREASON_NO_SOCKET)            // ours, but no socket on its queue
	ReasonExtension           = Reason(steerReasonREASON_EXTENSION)            // an extension header behind the IPv6 header
	ReasonJumbogram           = Reason(steerReasonREASON_JUMBOGRAM)            // an IPv6 packet of more than 65,575 bytes
	ReasonOtherQueue          = Reason(steerReasonREASON_OTHER_QUEUE)          // ours, on a queue that is not among its service's

	reasonCount = int(steerReasonREASON_COUNT)
)

var reasonNames = [reasonCount]string{
	ReasonRedirected:          "redirected",
	ReasonRedirectedUnstamped: "redirected_unstamped",
	ReasonNotIP:               "not_ip",
	ReasonIPv6:                "ipv6",
	ReasonVLAN:                "vlan",
	ReasonShort:               "short",
	ReasonBadVersion:          "bad_version",
	ReasonIPOptions:           "ip_options",
	ReasonFragment:            "fragment",
	ReasonNotUDP:              "not_udp",
	ReasonBadLength:           "bad_length",
	ReasonNoService:           "no_service",
	ReasonTooLong:             "too_long",
	ReasonNoSocket:            "no_socket",
	ReasonExtension:           "extension_header",
	ReasonJumbogram:           "jumbogram",
	ReasonOtherQueue:          "other_queue",
}

// String returns the reason in the spelling of metric labels.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason_%d", uint32(r))
}

// Redirected reports whether packets of this reason went to a socket.
func (r Reason) Redirected() bool { return r <= ReasonRedirectedUnstamped }

// VerdictCount is how many packets ended for one reason, over all CPUs, since the program was loaded.
type VerdictCount struct {
	Reason Reason
	Count  uint64
}
