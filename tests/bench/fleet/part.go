package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/florete/florete/tests/kit"
)

const rolePart = "part"

// arrival is what it took until all hosts had all needs fulfilled.
type arrival struct {
	took        time.Duration
	used        time.Duration // of the processor, by the hosts
	allocations uint64
	connections int64
}

// filesOfHost is how many a host opens while it comes: connections for each need, and what is
// written.
const filesOfHost = 6

// parts is into how many processes hosts are divided, each of which may open so many files.
func parts(hosts int) (int, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0, err
	}
	most := int(min(files.Cur, 1<<20)) / filesOfHost
	if most == 0 {
		return 0, fmt.Errorf("a process may open %d files, a host opens %d: raise that by ulimit -n", files.Cur, filesOfHost)
	}
	return (hosts + most - 1) / most, nil
}

// arrive has all hosts of a cluster come at once.
func (c cluster) arrive() (a arrival, err error) {
	n, err := parts(len(c.nodes))
	if err != nil {
		return a, err
	}
	var all []*part
	defer func() {
		for _, p := range all {
			p.in.Close()
			err = errors.Join(err, p.cmd.Wait())
		}
	}()
	for i := range n {
		p, err := c.startPart(i*len(c.nodes)/n, (i+1)*len(c.nodes)/n)
		if err != nil {
			return a, err
		}
		all = append(all, p)
	}
	began := time.Now()
	for _, p := range all {
		fmt.Fprintln(p.in)
	}
	for _, p := range all {
		var last, used, connections int64
		var allocations uint64
		if err := p.line(&last, &used, &allocations, &connections); err != nil {
			return a, err
		}
		a.took = max(a.took, time.Unix(0, last).Sub(began))
		a.used += time.Duration(used)
		a.allocations += allocations
		a.connections += connections
	}
	return a, nil
}

// part is a process with some of the hosts.
type part struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (c cluster) startPart(from, to int) (*part, error) {
	p := &part{cmd: exec.Command("/proc/self/exe", rolePart, c.dir, strconv.Itoa(c.services), strconv.Itoa(from), strconv.Itoa(to))}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.line()
}

// line reads the values of the next line that the process prints.
func (p *part) line(values ...any) error {
	text, err := p.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("hosts: the process ended: %w", err)
	}
	_, err = fmt.Sscan(text, values...)
	return err
}

// runPart is the process: its first line is that the hosts are ready, which then wait for one; the
// second is when the last had all needs fulfilled, and what it took.
func runPart(args []string) error {
	debug.SetGCPercent(quickGC)
	var services, from, to int
	for i, v := range []*int{&services, &from, &to} {
		var err error
		if *v, err = strconv.Atoi(args[i+1]); err != nil {
			return err
		}
	}
	c := cluster{dir: args[0], shape: shape{services: services}}
	for i := from; i < to; i++ {
		c.nodes = append(c.nodes, c.node(i))
	}
	h := newFleet(c, from)
	h.slots = make(chan struct{}, slots)
	fmt.Println()
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	a, err := h.arrive()
	if err != nil {
		return err
	}
	defer h.stop()
	fmt.Println(h.began.Add(a.took).UnixNano(), a.used.Nanoseconds(), a.allocations, a.connections)
	_, err = io.Copy(io.Discard, in)
	return err
}

// node is a host, without its key.
func (c cluster) node(i int) node {
	name := fmt.Sprintf("h%05d", i)
	n := node{name: name, id: kit.ID("node/" + name), dir: filepath.Join(c.dir, name)}
	for k := range c.services {
		n.services = append(n.services, kit.ID(fmt.Sprintf("service/app%d-%s", k, name)))
	}
	return n
}
