package llama

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// resources are what this process may use. root is / but in tests.
type resources struct{ root string }

// threads is how many threads can really run at once: no more than the CPUs that the process may run on, and no more than
// whole CPUs of its quota. Threads that wait for their share spin, and the tail of latency grows a hundredfold.
func (r resources) threads() int {
	n := affinity()
	if quota, ok := r.quota(); ok {
		n = min(n, max(1, int(quota)))
	}
	return max(1, n)
}

func affinity() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 1
	}
	return set.Count()
}

// quota is the tightest CPU limit of the cgroups above this process, in CPUs.
func (r resources) quota() (float64, bool) {
	limit := math.Inf(1)
	for _, dir := range r.groups("cpu") {
		if fields := strings.Fields(r.read(dir, "cpu.max")); len(fields) == 2 {
			limit = min(limit, ratio(fields[0], fields[1]))
		}
		limit = min(limit, ratio(r.read(dir, "cpu.cfs_quota_us"), r.read(dir, "cpu.cfs_period_us")))
	}
	return limit, !math.IsInf(limit, 1)
}

// ratio is infinite unless both are positive numbers: "max" and -1 mean no limit.
func ratio(quota, period string) float64 {
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return math.Inf(1)
	}
	return q / p
}

// memory is how many bytes may still be taken: the machine's available ones, or less under a cgroup's limit or that of the
// address space. The largest number means that nothing is known.
func (r resources) memory() uint64 {
	free := min(r.available(), r.addressSpace())
	for _, dir := range r.groups("memory") {
		for _, names := range [][2]string{{"memory.max", "memory.current"}, {"memory.limit_in_bytes", "memory.usage_in_bytes"}} {
			limit, err := strconv.ParseUint(r.read(dir, names[0]), 10, 64)
			if err != nil || limit > 1<<60 {
				continue // "max", or the number that the older interface has for it
			}
			used, _ := strconv.ParseUint(r.read(dir, names[1]), 10, 64)
			// Pages of files are counted as used and given back when memory runs short.
			used -= min(used, r.inactive(dir))
			free = min(free, limit-min(limit, used))
		}
	}
	return free
}

func (r resources) available() uint64 {
	kib, ok := field(r.read("proc/meminfo"), "MemAvailable:")
	if !ok {
		return math.MaxUint64
	}
	return kib << 10
}

// addressSpace is what the limit that "ulimit -v" sets leaves to this process. Native code that runs into it ends the
// process without a word.
func (r resources) addressSpace() uint64 {
	for line := range strings.Lines(r.read("proc/self/limits")) {
		rest, ok := strings.CutPrefix(line, "Max address space")
		soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		limit, err := strconv.ParseUint(soft, 10, 64)
		if !ok || err != nil {
			continue // another limit, or none
		}
		kib, _ := field(r.read("proc/self/status"), "VmSize:")
		return limit - min(limit, kib<<10)
	}
	return math.MaxUint64
}

func (r resources) inactive(dir string) uint64 {
	n, _ := field(r.read(dir, "memory.stat"), "inactive_file")
	return n
}

// field finds "name 123" in a text of such lines.
func field(text, name string) (uint64, bool) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// groups lists the directories of this process' cgroup and of those above it, for either version of the interface. In a
// container the path often names a place outside of what is mounted; the mount's root is then its own group.
func (r resources) groups(controller string) []string {
	var dirs []string
	lines := bufio.NewScanner(strings.NewReader(r.read("proc/self/cgroup")))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base := "sys/fs/cgroup"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ","+controller+",") {
				continue
			}
			base = filepath.Join(base, controller)
		}
		for p := filepath.Clean("/" + parts[2]); ; p = filepath.Dir(p) {
			dirs = append(dirs, filepath.Join(base, p))
			if p == "/" {
				break
			}
		}
	}
	return dirs
}

func (r resources) read(path ...string) string {
	b, err := os.ReadFile(filepath.Join(append([]string{r.root}, path...)...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
