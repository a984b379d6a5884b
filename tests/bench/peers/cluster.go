package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/bench/pair"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// cluster is the setting of the benchmark. Two forwarders publish services. A quiet and a noisy
// peer reach the services through their own forwarders. Every forwarder is its own process.
type cluster struct {
	pair.Pair
	quiet             string // address at which the quiet peer reaches the service of the first forwarder
	beside, elsewhere target // addresses at which the noisy peer reaches the services of the first and the second forwarder
}

// target contains the addresses of a service's local listeners.
type target struct{ tcp, udp string }

var calm, loud = kit.ID("user/calm"), kit.ID("user/loud")

func start(over document.Transport) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if r := recover(); r != nil { // a panic of TB
			err = fmt.Errorf("%v", r)
		}
	}()
	served, err := upstream()
	if err != nil {
		return c, err
	}
	noisy, err := c.noisyUpstream()
	if err != nil {
		return c, err
	}
	ca := kit.NewCA()
	hosts := map[string]*agenttest.Host{}
	for _, name := range []string{"one", "other", "still", "noise"} {
		hosts[name] = agenttest.NewHost(c.TB(), name, ca)
		hosts[name].Deliver(ca, kit.ID("node/"+name), time.Hour)
	}
	publish := func(host string, all ...document.Published) document.Addresses {
		at := agenttest.Loopback().String()
		var ids []spiffe.ID
		for _, p := range all {
			ids = append(ids, p.ID)
			hosts[host].Deliver(ca, p.ID, time.Hour)
		}
		hosts[host].Accept(document.Forwarder{Listen: []string{at}, Publish: all}, ids...)
		return document.Addresses{at}
	}
	service := func(name string, protocol document.Protocol, upstream string, caller spiffe.ID) document.Published {
		return document.Published{ID: kit.ID("service/" + name), Protocol: protocol, Upstream: upstream, Allow: []document.Allow{{ID: caller}}}
	}
	one := publish("one", service("noise", document.TCP, noisy, loud), service("noise-udp", document.UDP, noisy, loud), service("quiet", document.TCP, served, calm))
	other := publish("other", service("other", document.TCP, noisy, loud), service("other-udp", document.UDP, noisy, loud))
	reach := func(host string, caller spiffe.ID, all ...document.Reachable) {
		for i := range all {
			all[i].Callers, all[i].Transport = []spiffe.ID{caller}, over
		}
		hosts[host].Deliver(ca, caller, time.Hour)
		hosts[host].Accept(document.Forwarder{Reach: all, Callers: []document.Caller{{ID: caller, UIDs: []uint32{uint32(os.Getuid())}}}}, caller)
	}
	listener := func(name string, protocol document.Protocol, endpoint document.Addresses, at *string) document.Reachable {
		r := document.Reachable{ID: kit.ID("service/" + name), Protocol: protocol, Listen: agenttest.Loopback(), Endpoints: []document.Addresses{endpoint}}
		*at = r.Listen.String()
		return r
	}
	reach("still", calm, listener("quiet", document.TCP, one, &c.quiet))
	reach("noise", loud,
		listener("noise", document.TCP, one, &c.beside.tcp), listener("noise-udp", document.UDP, one, &c.beside.udp),
		listener("other", document.TCP, other, &c.elsewhere.tcp), listener("other-udp", document.UDP, other, &c.elsewhere.udp))
	if err := onFirst(func() error { return c.StartForwarders(hosts["one"], hosts["other"]) }); err != nil {
		return c, err
	}
	return c, c.StartForwarders(hosts["still"], hosts["noise"])
}

// noisyUpstream starts a process that serves the noisy peer, and returns its address.
func (c *cluster) noisyUpstream() (string, error) {
	at := kit.Address()
	if err := c.StartSelf(roleEnv+"=upstream", atEnv+"="+at); err != nil {
		return "", err
	}
	return at, pair.Wait(func() error {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// noise starts a process that makes a type of noise. The process runs until stop is called.
func (c *cluster) noise(kind string, to target) (stop func(), err error) {
	at := to.tcp
	if kind == datagrams {
		at = to.udp
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"="+kind, atEnv+"="+at)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		cmd.Process.Kill()
		cmd.Wait()
		time.Sleep(settling)
	}, nil
}
