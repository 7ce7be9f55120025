//go:build linux

package cpu

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// taskDir lists the threads of this process.
const taskDir = "/proc/self/task"

// cpuCountMax is how many CPUs fit the kernel interface as golang.org/x/sys offers it.
const cpuCountMax = 8 * len(unix.CPUSet{}) * (strconv.IntSize / 8)

// Allowed returns the CPUs that the calling thread may run on, in ascending order. After [PinProcess], that is where
// the whole process may.
func Allowed() ([]int, error) {
	cpus, err := allowedOf(0)
	if err != nil {
		return nil, fmt.Errorf("cpu: read the affinity of this thread: %w", err)
	}
	return cpus, nil
}

func allowedOf(tid int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &set); err != nil {
		return nil, err
	}
	var cpus []int
	for cpu := range cpuCountMax {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// PinThread restricts the calling thread to the given CPUs, and so the threads that it will start. Whoever calls it has locked the goroutine to its
// thread, and lets that end with it.
func PinThread(cpus ...int) error {
	set, err := setOf(cpus)
	if err != nil {
		return fmt.Errorf("cpu: pin the thread: %w", err)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("cpu: pin the thread to CPUs %v: %w; see Cpus_allowed_list in /proc/self/status", cpus, err)
	}
	return nil
}

// setOf is the kernel's form of a list of CPUs.
func setOf(cpus []int) (set unix.CPUSet, err error) {
	if len(cpus) == 0 {
		return set, errors.New("no CPU given")
	}
	for _, cpu := range cpus {
		if cpu < 0 || cpu >= cpuCountMax {
			return set, fmt.Errorf("CPU %d is not in 0..%d", cpu, cpuCountMax-1)
		}
		set.Set(cpu)
	}
	return set, nil
}

// PinProcess restricts every thread of this process to the given CPUs, and so the threads that they will start: a
// thread inherits the affinity of its maker. It is for the whole process because Go moves goroutines between threads as it likes.
//
// It does not touch GOMAXPROCS, which Go fits to the affinity by itself within seconds unless it was set; a
// program that measures should set both. Call it again with what [Allowed] said before to undo it. On an
// error, some threads may have been moved already.
func PinProcess(cpus ...int) error {
	set, err := setOf(cpus)
	if err != nil {
		return fmt.Errorf("cpu: pin the process: %w", err)
	}
	if err := pinAll(&set); err != nil {
		return fmt.Errorf("cpu: pin the process to CPUs %v: %w", cpus, err)
	}
	// The kernel silently leaves out CPUs that are offline or outside of the cpuset, as long as one is left.
	got, err := Allowed()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		if !slices.Contains(got, cpu) {
			return fmt.Errorf("cpu: pin the process to CPUs %v: only %v can be had; "+
				"see /sys/devices/system/cpu/online and the cpuset of this cgroup", cpus, got)
		}
	}
	return nil
}

// pinAll repeats until two passes in a row find no thread that an earlier one had not pinned. One would do but for
// readdir, which can miss a thread when others end during the listing; a thread started after the pinning of its maker
// is pinned from birth.
func pinAll(set *unix.CPUSet) error {
	pinned := make(map[int]bool)
	for quiet := 0; quiet < 2; {
		fresh, err := pinPass(set, pinned)
		if err != nil {
			return err
		}
		if quiet++; fresh > 0 {
			quiet = 0
		}
	}
	return nil
}

func pinPass(set *unix.CPUSet, pinned map[int]bool) (fresh int, err error) {
	tasks, err := os.ReadDir(taskDir)
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			return fresh, fmt.Errorf("%s has %q, which is no thread: %w", taskDir, task.Name(), err)
		}
		if pinned[tid] {
			continue
		}
		switch err := unix.SchedSetaffinity(tid, set); {
		case errors.Is(err, unix.ESRCH): // it has ended meanwhile
		case errors.Is(err, unix.EINVAL):
			return fresh, fmt.Errorf("none of them is online and in the cpuset of this cgroup "+
				"(see /sys/devices/system/cpu/online): %w", err)
		case err != nil:
			return fresh, fmt.Errorf("thread %d: %w", tid, err)
		}
		pinned[tid] = true
		fresh++
	}
	return fresh, nil
}
