package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/tests/program"
)

// scale measures hosts that come all at once, documents published to them, and idle hosts.
func scale(f figures) error {
	for _, engine := range strings.Split(*engines, ",") {
		if engine == engineEtcd {
			f.suffix = "_etcd"
			if _, err := program.Find("etcd"); err != nil {
				fmt.Println("NOT RUN:", err)
				continue
			}
		}
		err := with(shape{hosts: *hosts, services: 1, documents: true, engine: engine}, func(c cluster, p *process) error { return scaled(f, c, p) })
		if err != nil {
			return err
		}
	}
	return nil
}

func scaled(f figures, c cluster, p *process) error {
	before := p.resident()
	h := newFleet(c)
	if err := cold(f, "cold_%s", c, p, h.arrive); err != nil {
		return err
	}
	defer h.stop()
	time.Sleep(quiet)
	for n := 1; n <= 2; n++ {
		at, err := p.publish(c, n)
		if err != nil {
			return err
		}
		took, err := h.applied(c.serial(n), at)
		if err != nil {
			return err
		}
		slices.Sort(took)
		f.note("publish_%s_p50_s", "s", took[len(took)/2].Seconds())
		f.note("publish_%s_p99_s", "s", took[len(took)*99/100].Seconds())
		f.note("publish_%s_max_s", "s", took[len(took)-1].Seconds())
		time.Sleep(quiet)
	}
	used, began := p.used(), time.Now()
	time.Sleep(*idle)
	f.note("idle_cpu_%s", "% of a core", 100*(p.used()-used).Seconds()/time.Since(began).Seconds())
	resident := p.resident()
	f.note("idle_mb_%s", "MiB", resident)
	f.note("watch_%s_mb", "MiB", resident-before)
	return nil
}

// quiet is long enough for hosts to finish the work that follows when something comes in force.
const quiet = 20 * time.Second

// with sets up a cluster and its provider, runs f and stops them.
func with(s shape, f func(cluster, *process) error) error {
	dir, err := os.MkdirTemp(memory(), "fleet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := newCluster(dir, s)
	if err != nil {
		return err
	}
	p, err := startProvider(c)
	if err != nil {
		return err
	}
	defer p.stop()
	return f(c, p)
}

// memory returns a directory in memory if there is one, where flushing takes no time: real hosts
// have a disk each.
func memory() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

// quickGC is the GOGC of the process of hosts: a real host is a process of its own, too small to
// collect garbage while it starts.
const quickGC = 400

// cold starts all hosts at once, and notes the cost beside that of the handshakes and signatures
// alone.
func cold(f figures, key string, c cluster, p *process, arrive func() (arrival, error)) error {
	debug.SetGCPercent(quickGC)
	used, own := p.used(), ownUse()
	minimum, err := c.minimum()
	if err != nil {
		return err
	}
	f.note(key+"_minimum_s", "s", minimum.Seconds())
	f.note(key+"_minimum_cpu_s", "s of the provider", (p.used() - used).Seconds())
	f.note(key+"_minimum_hosts_cpu_s", "s of the hosts", (ownUse() - own).Seconds())
	if c.documents {
		if _, err := p.publish(c, 0); err != nil {
			return err
		}
	}
	profiled, err := profile("hosts")
	if err != nil {
		return err
	}
	used = p.used()
	a, err := arrive()
	profiled()
	if err != nil {
		return err
	}
	f.note(key+"_s", "s", a.took.Seconds())
	f.note(key+"_ratio", "", a.took.Seconds()/minimum.Seconds())
	f.note(key+"_cpu_s", "s of the provider", (p.used() - used).Seconds())
	f.note(key+"_hosts_cpu_s", "s of the hosts", a.used.Seconds())
	f.note(key+"_connections", "of each host", float64(a.connections)/float64(len(c.nodes)))
	f.note(key+"_allocations", "of each host", float64(a.allocations)/float64(len(c.nodes)))
	return nil
}

// allocations returns the number of allocations of this process so far, which runs the hosts.
// Unlike processor time it hardly varies between runs.
func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
