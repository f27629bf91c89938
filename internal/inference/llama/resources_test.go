package llama

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func rootOf(t *testing.T, files map[string]string) resources {
	t.Helper()
	r := resources{root: t.TempDir()}
	for name, content := range files {
		path := filepath.Join(r.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestLimitsOfTheContainerAreFound(t *testing.T) {
	const v2, v1 = "0::/pods/a\n", "4:cpu,cpuacct:/pods/a\n3:memory:/pods/a\n"
	none := math.Inf(1)
	tests := map[string]struct {
		files      map[string]string
		wantQuota  float64
		wantMemory uint64
	}{
		"no limit at all":         {map[string]string{"proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 8 kB\n"}, none, 8192},
		"nothing that is known":   {nil, none, math.MaxUint64},
		"a limit of one and half": {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/pods/a/cpu.max": "150000 100000\n"}, 1.5, math.MaxUint64},
		"a tighter limit above": {map[string]string{
			"proc/self/cgroup": v2, "sys/fs/cgroup/pods/a/cpu.max": "max 100000", "sys/fs/cgroup/pods/cpu.max": "50000 100000",
		}, 0.5, math.MaxUint64},
		"the mount of a container, which shows its own group only": {map[string]string{
			"proc/self/cgroup": v2, "sys/fs/cgroup/cpu.max": "200000 100000", "sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "400",
		}, 2, 600},
		"pages of files are given back": {map[string]string{
			"proc/self/cgroup": v2, "sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "900",
			"sys/fs/cgroup/memory.stat": "anon 100\ninactive_file 500\n",
		}, none, 600},
		"more in use than allowed": {map[string]string{
			"proc/self/cgroup": v2, "sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "1200",
		}, none, 0},
		"a limit of the address space": {map[string]string{
			"proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units\nMax file size             10                   10                   bytes\n" +
				"Max address space         1000000              unlimited            bytes\n",
			"proc/self/status": "Name:\tdecider\nVmSize:\t     500 kB\n", "proc/meminfo": "MemAvailable: 9000 kB\n",
		}, none, 1000000 - 500<<10},
		"an address space beyond its limit": {map[string]string{
			"proc/self/limits": "Max address space         1000                 1000                 bytes\n", "proc/self/status": "VmSize:\t     500 kB\n",
		}, none, 0},
		"an address space without a limit": {map[string]string{
			"proc/self/limits": "Max address space         unlimited            unlimited            bytes\n", "proc/self/status": "VmSize:\t     500 kB\n",
		}, none, math.MaxUint64},
		"the older interface": {map[string]string{
			"proc/self/cgroup": v1, "sys/fs/cgroup/cpu/pods/a/cpu.cfs_quota_us": "300000", "sys/fs/cgroup/cpu/pods/a/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "5000", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000",
		}, 3, 4000},
		"the older interface without limits": {map[string]string{
			"proc/self/cgroup": v1, "sys/fs/cgroup/cpu/pods/a/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/pods/a/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
		}, none, math.MaxUint64},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := rootOf(t, tc.files)
			quota, limited := r.quota()
			if quota != tc.wantQuota || limited == math.IsInf(tc.wantQuota, 1) {
				t.Errorf("quota %v, want %v", quota, tc.wantQuota)
			}
			if got := r.memory(); got != tc.wantMemory {
				t.Errorf("memory %d, want %d", got, tc.wantMemory)
			}
		})
	}
}

func TestThreadsFollowTheQuota(t *testing.T) {
	free := rootOf(t, nil).threads()
	if free != affinity() || free < 1 {
		t.Errorf("%d threads without a quota, the process may run on %d CPUs", free, affinity())
	}
	for quota, want := range map[string]int{"50000 100000": 1, "199000 100000": 1, "6400000 100000": free} {
		r := rootOf(t, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": quota})
		if got := r.threads(); got != want {
			t.Errorf("quota %s: %d threads, want %d", quota, got, want)
		}
	}
}
