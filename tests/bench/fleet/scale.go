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

// scale measures the load of hosts that start at the same time, of documents that are published to
// them, and of idle hosts.
func scale(f figures) error {
	for engine := range strings.SplitSeq(*engines, ",") {
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
	return p.profile("idle")
}

// quiet is the time after which hosts have finished the work that follows new documents.
const quiet = 20 * time.Second

// with starts a cluster with its provider, runs f on it, and stops the cluster.
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

// memory returns a directory in memory for the files of the hosts, if the machine has one. Real
// hosts have a disk each, so they must not wait here for a shared disk.
func memory() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

// quickGC is the setting GOGC of the process that runs the hosts. It is high, because a real host
// is a small process that does not collect garbage while it starts.
const quickGC = 400

// cold starts all hosts at the same time and records the cost. For comparison it records the cost
// of the handshakes and signatures alone.
func cold(f figures, key string, c cluster, p *process, arrive func() (arrival, error)) error {
	debug.SetGCPercent(quickGC)
	used, own := p.used(), ownUse()
	minimum, err := c.minimum()
	if err != nil {
		return err
	}
	minimumUse := (p.used() - used) + (ownUse() - own)
	f.note(key+"_minimum_s", "s", minimum.Seconds())
	f.note(key+"_minimum_cpu_s", "s of both", minimumUse.Seconds())
	if c.documents {
		if _, err := p.publish(c, 0); err != nil {
			return err
		}
	}
	if err := p.profile("minimum"); err != nil {
		return err
	}
	profiled, err := profile()
	if err != nil {
		return err
	}
	used = p.used()
	a, err := arrive()
	providerUse := p.used() - used
	profiled("hosts-cold")
	if err == nil {
		err = p.profile("cold")
	}
	if err != nil {
		return err
	}
	f.note(key+"_s", "s", a.took.Seconds())
	f.note(key+"_ratio", "", a.took.Seconds()/minimum.Seconds())
	f.note(key+"_cpu_ratio", "", (providerUse+a.used).Seconds()/minimumUse.Seconds())
	f.note(key+"_cpu_s", "s of the provider", providerUse.Seconds())
	f.note(key+"_hosts_cpu_s", "s of the hosts", a.used.Seconds())
	f.note(key+"_connections", "of each host", float64(a.connections)/float64(len(c.nodes)))
	f.note(key+"_allocations", "of each host", float64(a.allocations)/float64(len(c.nodes)))
	return nil
}

// allocations returns the number of allocations of this process, which runs the hosts. Unlike
// processor time, this number hardly varies between runs.
func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
