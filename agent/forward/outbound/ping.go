package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// parting is the time that a service has to close the connection of a ping before the connection is
// reset.
const parting = time.Second

// Ping tests whether processes of the account with the given uid can connect to a service. It
// connects as such a process would, as far as the program behind the service, and closes the
// connection without sending data. The result contains each step. Like any connection, a ping uses
// an existing connection between the two forwarders if there is one.
func (s *Server) Ping(ctx context.Context, uid uint32, service string) ping.Result {
	p := &pinging{server: s, result: ping.Result{Service: service}, begun: time.Now()}
	p.run(ctx, connection{rules: s.rules.Load(), connKey: connKey{by: caller.Process{UID: uid}}})
	p.rest()
	return p.result
}

// Names reports whether the manifest declares the account with the given uid as a caller.
func (s *Server) Names(uid uint32) bool {
	_, ok := s.rules.Load().callers.Identity(caller.Process{UID: uid})
	return ok
}

// pinging is the state of a Ping that is in progress.
type pinging struct {
	server *Server
	result ping.Result
	begun  time.Time // beginning of the current step
}

// ok records that the current step succeeded, and begins the next step.
func (p *pinging) ok(step, detail string) {
	p.result.Steps = append(p.result.Steps, ping.Step{Name: step, Detail: detail, Nanoseconds: int64(time.Since(p.begun))})
	p.begun = time.Now()
}

// fail records that a step failed. If the step is already recorded as successful, fail replaces
// that record.
func (p *pinging) fail(step, problem, remedy string) {
	if n := len(p.result.Steps); n > 0 && p.result.Steps[n-1].Name == step {
		p.result.Steps = p.result.Steps[:n-1]
	}
	p.result.Steps = append(p.result.Steps, ping.Step{Name: step, Error: problem, Remedy: remedy, Nanoseconds: int64(time.Since(p.begun))})
	p.begun = time.Now()
}

// rest records the remaining steps as not performed, because each of them depends on the step that
// failed.
func (p *pinging) rest() {
	if p.result.ID == "" {
		return
	}
	last := p.result.Steps[len(p.result.Steps)-1].Name
	for _, step := range ping.Steps[slices.Index(ping.Steps, last)+1:] {
		p.result.Steps = append(p.result.Steps, ping.Step{Name: step, Needs: last})
	}
}

// refuse records that a step failed because of a refusal. The refusal determines the step and the
// remedy.
func (p *pinging) refuse(c connection, step string, denied *refusal) {
	if denied == nil { // not a refusal: the far side has reset the stream
		denied = &refusal{wire.Reset.String(), "the forwarder there gave up"}
	}
	p.server.refuse(c, denied)
	cure, known := cures[denied.reason]
	if !known {
		cure = remedy{"", "flor doctor, here and on the host that publishes it"}
	}
	if cure.step != "" {
		step = cure.step
	}
	if step == ping.Upstream {
		p.proven(c)
	}
	p.fail(step, denied.reason+": "+denied.detail, cure.what)
}

// proven records the step in which both sides prove their identities. The handshake has verified
// them.
func (p *pinging) proven(c connection) {
	p.result.Steps = append(p.result.Steps, ping.Step{Name: ping.Identity, Detail: "in the handshake: it is " + c.target.ID().Short() + ", and this is " + c.as.Short()})
}

// find returns the service with the given name, which may have any form that a person writes, such
// as a short name.
func (r *rules) find(name string) (spiffe.Dialable, error) {
	d, err := r.named(name, ping.Find)
	if _, reached := r.ports[d]; reached && err == nil {
		return d, nil
	}
	if alias, ok := r.aliases.Resolve(name + "." + r.trustDomain + spiffe.Suffix); ok {
		return alias, nil
	}
	return d, err
}

func (p *pinging) run(ctx context.Context, c connection) {
	var err error
	name, port, _ := strings.Cut(p.result.Service, ":")
	if c.target, err = c.rules.find(name); err != nil {
		p.fail(ping.Name, err.Error(), "name a service as programs do, or without its domain: wiki, wiki."+c.rules.trustDomain+spiffe.Suffix)
		return
	}
	ports := c.rules.ports[c.target]
	at := slices.IndexFunc(ports, func(k serviceKey) bool { return k.port == port })
	if at < 0 && len(ports) > 0 {
		p.fail(ping.Name, fmt.Sprintf("%s has no port %q that is reachable from this host", c.target.ID().Short(), port), "name one of its ports: "+portNames(name, ports))
		return
	}
	if at < 0 {
		p.fail(ping.Name, fmt.Sprintf("%s is not reachable from this host: none has that name, or no role here reaches it", c.target.ID().Short()),
			"as root, flor status lists what is reachable; if the name is right, have a role of this host, or of somebody on it, reach the service in the topology")
		return
	}
	c.serviceKey = ports[at]
	reach := c.rules.reach[c.serviceKey]
	p.result.ID, p.result.Host, p.result.Listen = c.target.ID().String(), spiffe.Render(c.target), reach.Listen.String()
	p.ok(ping.Name, p.result.Host)
	if !p.server.listens(reach) {
		p.fail(ping.Listener, fmt.Sprintf("the agent does not listen at %s", reach.Listen), "flor status shows why; ss --listening --tcp --udp --processes names who has the port")
	} else {
		p.ok(ping.Listener, reach.Listen.String())
	}
	c.as, _ = c.rules.callers.Identity(c.by)
	ctx, end, ok := p.admit(ctx, c)
	if !ok {
		return
	}
	defer end()
	p.open(ctx, c)
}

// portNames returns the names of a service's ports in the form that ping accepts, as a list.
func portNames(service string, ports []serviceKey) string {
	var names []string
	for _, k := range ports {
		names = append(names, strings.TrimSuffix(service+":"+k.port, ":"))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// admit performs the step in which the rules of this host are checked.
func (p *pinging) admit(ctx context.Context, c connection) (context.Context, func(), bool) {
	release, ok := p.server.users.Acquire(c.by.UID)
	if !ok {
		p.refuse(c, ping.Caller, &refusal{becauseTooMany, fmt.Sprintf("has %d connections", p.server.users.Max())})
		return nil, nil, false
	}
	if denied := c.rules.check(c.connKey); denied != nil {
		release()
		p.refuse(c, ping.Caller, denied)
		return nil, nil, false
	}
	ctx, end, ok := p.server.admit(ctx, c)
	if !ok {
		release()
		p.fail(ping.Caller, "the manifest changed", "ping again")
		return nil, nil, false
	}
	p.ok(ping.Caller, fmt.Sprintf("uid %d acts as %s", c.by.UID, c.as.Short()))
	return ctx, func() { end(); release() }, true
}

// open performs the steps that involve the forwarder on the other host.
func (p *pinging) open(ctx context.Context, c connection) {
	counted := p.server.Metrics.Begin(telemetry.Out, c.target.ID(), c.port, c.as)
	defer counted.Done()
	fresh, err := p.server.Pool.Probe(ctx, c.rules.route(c.serviceKey, c.as))
	if err != nil {
		denied := explain(err)
		if denied != nil && cures[denied.reason].step == ping.Identity {
			p.ok(ping.Dial, "a forwarder answered")
		}
		p.refuse(c, ping.Dial, denied)
		return
	}
	made := "a connection kept from earlier"
	if fresh {
		made = "a new connection"
	}
	p.ok(ping.Dial, made)
	st, err := p.server.request(ctx, c, nil)
	if err != nil {
		p.refuse(c, ping.Upstream, explain(err))
		return
	}
	counted.Opened(time.Since(p.begun))
	p.result.Steps[len(p.result.Steps)-1].Detail = fmt.Sprintf("%s over %s, %s", st.Forwarder(), st.Transport(), made)
	p.proven(c)
	p.ok(ping.Upstream, shown(c.protocol))
	if !p.server.carrying.Go(func(ctx context.Context) { part(ctx, st) }) {
		part(ctx, st)
	}
}

// shown returns a sentence that says what an answer of the far side proves about the service. This
// depends on the protocol.
func shown(over document.Protocol) string {
	if over == document.UDP {
		return "the forwarder there has a socket for it; whether something answers, a datagram alone would show"
	}
	return "connected"
}

// part closes a stream normally. If the service does not close its side in time, part resets the
// stream.
func part(ctx context.Context, st *transport.Stream) {
	defer st.Release()
	ctx, cancel := context.WithTimeout(ctx, parting)
	defer cancel()
	defer context.AfterFunc(ctx, func() { st.SetReadDeadline(time.Now()) })()
	st.Close()
	if _, err := io.Copy(io.Discard, st.Stream); err != nil && !errors.Is(err, io.EOF) {
		transport.Reset(st.Stream, wire.Reset)
	}
}

// listens reports whether the local listener of a service is open.
func (s *Server) listens(r document.Reachable) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Protocol == document.UDP {
		return s.udp[r.Listen] != nil
	}
	return s.tcp[r.Listen] != nil
}
