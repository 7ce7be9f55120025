package wire_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/stillwater-rpc/stillwater/wire"
)

// The bytes are those of the RFCs, written by hand.
func TestAnnounce(t *testing.T) {
	mac := wire.MAC{2, 0, 0, 0, 0, 7}
	for address, want := range map[string]string{
		"10.1.2.3": "ffffffffffff 020000000007 0806 0001 0800 06 04 0001 020000000007 0a010203 000000000000 0a010203" + strings.Repeat("00", 18),
		"fd00::5": "333300000001 020000000007 86dd 60000000 0020 3a ff fd000000000000000000000000000005 ff020000000000000000000000000001" +
			"88 00 SSSS 20000000 fd000000000000000000000000000005 02 01 020000000007",
	} {
		frame := make([]byte, wire.AnnounceBytes)
		for i := range frame {
			frame[i] = 0xa5
		}
		n := wire.Announce(frame, mac, netip.MustParseAddr(address).As16())
		got := hex.EncodeToString(frame[:n])
		want = strings.ReplaceAll(want, " ", "")
		if at := strings.Index(want, "SSSS"); at > 0 {
			checkICMPv6(t, frame[:n])
			want = want[:at] + got[at:at+4] + want[at+4:]
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", address, got, want)
		}
	}
}

// checkICMPv6 adds the pseudo header and the message up as RFC 4443, section 2.3, says: with the checksum they make 0xffff.
func checkICMPv6(t *testing.T, frame []byte) {
	t.Helper()
	ip := frame[14:]
	all := append([]byte{}, ip[8:40]...)
	all = append(all, 0, 0, 0, byte(len(ip)-40), 0, 0, 0, 58)
	all = append(all, ip[40:]...)
	total := 0
	for i := 0; i < len(all); i += 2 {
		total += int(all[i])<<8 | int(all[i+1])
	}
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	if total != 0xffff {
		t.Errorf("the checksum does not add up: %x", total)
	}
}
