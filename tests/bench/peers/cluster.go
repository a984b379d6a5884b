package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/agenttest"
	"github.com/florete/florete/tests/bench/pair"
	"github.com/florete/florete/tests/kit"
)

// cluster is two forwarders that publish, and those of a quiet and a noisy peer, each a
// process.
type cluster struct {
	pair.Pair
	quiet             string // where the quiet peer's processes reach the first one's service
	beside, elsewhere target // where the noisy one's reach both of them
}

// target is a service's listeners, of TCP and of UDP.
type target struct{ tcp, udp string }

var calm, loud = kit.ID("user/calm"), kit.ID("user/loud")

func start(over florete.Transport) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if r := recover(); r != nil { // of TB
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
	publish := func(host string, all ...florete.Published) florete.Addresses {
		at := agenttest.Loopback().String()
		var ids []florete.ID
		for _, p := range all {
			ids = append(ids, p.ID)
			hosts[host].Deliver(ca, p.ID, time.Hour)
		}
		hosts[host].Accept(florete.Forwarder{Listen: []string{at}, Publish: all}, ids...)
		return florete.Addresses{at}
	}
	service := func(name string, protocol florete.Protocol, upstream string, caller florete.ID) florete.Published {
		return florete.Published{ID: kit.ID("service/" + name), Protocol: protocol, Upstream: upstream, Allow: []florete.Allow{{ID: caller}}}
	}
	one := publish("one", service("noise", florete.TCP, noisy, loud), service("noise-udp", florete.UDP, noisy, loud), service("quiet", florete.TCP, served, calm))
	other := publish("other", service("other", florete.TCP, noisy, loud), service("other-udp", florete.UDP, noisy, loud))
	reach := func(host string, caller florete.ID, all ...florete.Reachable) {
		for i := range all {
			all[i].Callers, all[i].Transport = []florete.ID{caller}, over
		}
		hosts[host].Deliver(ca, caller, time.Hour)
		hosts[host].Accept(florete.Forwarder{Reach: all, Callers: []florete.Caller{{ID: caller, UIDs: []uint32{uint32(os.Getuid())}}}}, caller)
	}
	listener := func(name string, protocol florete.Protocol, endpoint florete.Addresses, at *string) florete.Reachable {
		r := florete.Reachable{ID: kit.ID("service/" + name), Protocol: protocol, Listen: agenttest.Loopback(), Endpoints: []florete.Addresses{endpoint}}
		*at = r.Listen.String()
		return r
	}
	reach("still", calm, listener("quiet", florete.TCP, one, &c.quiet))
	reach("noise", loud,
		listener("noise", florete.TCP, one, &c.beside.tcp), listener("noise-udp", florete.UDP, one, &c.beside.udp),
		listener("other", florete.TCP, other, &c.elsewhere.tcp), listener("other-udp", florete.UDP, other, &c.elsewhere.udp))
	if err := onFirst(func() error { return c.StartForwarders(hosts["one"], hosts["other"]) }); err != nil {
		return c, err
	}
	return c, c.StartForwarders(hosts["still"], hosts["noise"])
}

// noisyUpstream is a process that serves the noise.
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

// noise has a process make some until stop is called.
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
