//go:build linux

package doctor

import (
	"io/fs"
)

// Verdict is the result of one check.
type Verdict string

// The verdicts of checks.
const (
	OK      Verdict = "ok"
	Warn    Verdict = "warn"
	Fail    Verdict = "fail"
	Unknown Verdict = "unknown"
)

// Item is one check.
type Item struct {
	ID      string  `json:"id"`    // group.name
	Group   string  `json:"group"` // one of Groups
	Verdict Verdict `json:"verdict"`
	Have    string  `json:"have"`           // what is
	Want    string  `json:"want,omitempty"` // what should be, unless it is so
	Why     string  `json:"why,omitempty"`  // what it does to packets
	Cure    string  `json:"cure,omitempty"` // a line for a shell; what no command can do stands in it as a comment
}

// Groups are the groups of checks, in their order.
var Groups = []string{"kernel", "bpf", "nic", "steering", "cpu", "memory", "privileges", "clock", "cgroup"}

// Path is how packets will travel, best first.
type Path string

// The paths.
const (
	NativeZeroCopy Path = "native-zc"   // XDP in the driver, and the NIC reads and writes our memory
	NativeCopy     Path = "native-copy" // XDP in the driver, and the kernel copies
	SKB            Path = "skb"         // XDP in the kernel's stack, generic mode
	Socket         Path = "socket"      // no AF_XDP: kernel UDP
)

// Report is the result of an examination.
type Report struct {
	Path Path `json:"verdict"`
	// Proven says that a trial, or a failed check, decided it. Otherwise it is what the driver says of itself or what is known of it and, where no
	// interface was named, the best that the host allows.
	Proven bool   `json:"proven"`
	Reason string `json:"reason"`

	OKCount      int `json:"ok_count"`
	WarnCount    int `json:"warn_count"`
	FailCount    int `json:"fail_count"`
	UnknownCount int `json:"unknown_count"`

	Items []Item `json:"items"`
}

// Needs are what our program takes.
type Needs struct {
	MemoryBytes   func(queues int) int64 // what is locked for so many queues
	PacketSizeMax int                    // longest packet that a frame holds, from the Ethernet header on
	QueuesMax     int                    // queues that one endpoint serves
}

// Offload is a feature that is on or off, and perhaps for good.
type Offload struct{ On, Changeable bool }

// Program is what runs at the XDP hook of the interface.
type Program struct {
	Ours bool   // of a Stillwater that runs, or left by one
	Mode string // native, generic or offload
	Text string // its name and who holds it
	Cure string // how it goes away
}

// NIC is what is known of the interface. The zero value of a field is unknown.
type NIC struct {
	Interface  string
	Driver     string
	Up         *bool
	MTUBytes   int
	QueueCount int                // receive queues
	Features   []string           // of XDP, as the driver says; nil = unknown
	Metadata   []string           // of received packets, as the driver says; looked at where Features are known
	Offloads   map[string]Offload // by the kernel's name
	AdaptiveRx *bool              // of interrupt coalescing
	RxUsecs    uint32             // the same; looked at where AdaptiveRx is known
	HasRules   *bool              // whether the driver can steer by rules
	RuleCount  int                // of rules that are there
	FlowHash   string             // what the hash of UDP takes in, by ethtool's letters
	NUMANode   *int               // -1 = the machine has but one, or does not say
	LocalCPUs  string             // those near the NIC, like 0-7
	Program    *Program           // nil = none, if ProgramKnown
	// ProgramKnown says that it was looked what runs at the XDP hook.
	ProgramKnown bool
}

// Step is one step of a trial.
type Step string

// The steps of a trial, in their order.
const (
	StepLoad     Step = "load"      // our program passes the kernel's verifier
	StepNative   Step = "native"    // it attaches in the driver
	StepGeneric  Step = "generic"   // it attaches in the stack; tried where native fails
	StepZeroCopy Step = "zero-copy" // a socket binds so; not tried in generic mode
	StepCopy     Step = "copy"      // a socket binds so; tried where zero-copy fails, and in generic mode
)

// Trial is what was tried on the live host, and taken back.
type Trial struct {
	Results map[Step]error // nil = it went well; a step without an entry was not made
	Skipped string         // why the interface was not tried; empty = it was
	Cure    string         // how to have it tried
	Memory  string         // what the packets' memory was made of, as xsk.UMEM.Memory says it; empty = not tried
}

// Facts are all that is judged.
type Facts struct {
	Root       fs.FS // with proc and sys in it
	Interfaces []string
	NIC        *NIC // nil = no interface was named
	Trial      Trial
	Needs      Needs
}

// examination is one run over the facts.
type examination struct {
	Facts
	tree
	items []Item
}

// check judges one thing. It returns no items if there is nothing to judge.
type check func(*examination) []Item

var checks = []check{
	kernelRelease, kernelAFXDP,
	bpfSyscall, bpfJIT, bpfLoad,
	nicInterface, nicLink, nicDriver, nicProgram, nicQueues, nicNative, nicGeneric, nicZeroCopy, nicMetadata, nicMTU, nicLRO, nicGROHW,
	nicTxChecksum, nicCoalescing,
	steeringRules, steeringHash,
	cpuCount, cpuGovernor, cpuIdle, cpuNUMA,
	memoryLock, memoryHugePages,
	privilegeNetAdmin, privilegeNetRaw, privilegeBPF, privilegeUserNamespace, privilegeSeccomp,
	clockSource,
	cgroupCPUMax,
}

// Examine judges the facts. It takes milliseconds, and changes nothing.
func Examine(f Facts) Report {
	e := &examination{Facts: f, tree: tree{f.Root}}
	for _, check := range checks {
		e.items = append(e.items, check(e)...)
	}
	r := Report{Items: e.items}
	for _, i := range r.Items {
		switch i.Verdict {
		case OK:
			r.OKCount++
		case Warn:
			r.WarnCount++
		case Fail:
			r.FailCount++
		default:
			r.UnknownCount++
		}
	}
	r.Path, r.Proven, r.Reason = e.path()
	return r
}

// verdict returns how a check ended that has been made.
func (e *examination) verdict(id string) Verdict {
	for _, i := range e.items {
		if i.ID == id {
			return i.Verdict
		}
	}
	return Unknown
}
