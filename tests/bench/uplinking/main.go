// Command uplinking measures the memory that idle uplinks use at a relay and at the hosts. All
// hosts are one process here. For comparison, the command measures the same number of idle
// connections between a server and a client of quic-go.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/bench/pair"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

var (
	uplinks = flag.Int("uplinks", 1000, "number of uplinks")
	file    = flag.String("json", "", "write the figures to `FILE`")
)

const (
	// hostsEnv is the environment variable that makes this program keep the uplinks of hosts. It
	// contains the directory of the hosts' state, the address of the relay and the number of hosts.
	hostsEnv = "FLORETE_BENCH_UPLINKS"
	// bareEnv is the environment variable that makes this program a server or a client of quic-go.
	// It contains the address and the number of connections. The number is zero for the server.
	bareEnv = "FLORETE_BENCH_BARE"
	// settle is the time after which idle processes have released the memory that they do not keep.
	settle = 5 * time.Second
)

func main() {
	pair.Child()
	for env, child := range map[string]func(words []string) error{hostsEnv: hosts, bareEnv: bare} {
		if words := strings.Fields(os.Getenv(env)); len(words) > 0 {
			exit(child(words))
		}
	}
	flag.Parse()
	exit(run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func state(dir string, i int) hostdir.Layout {
	return hostdir.Layout(filepath.Join(dir, strconv.Itoa(i)))
}

func node(i int) spiffe.ID { return kit.ID(fmt.Sprintf("node/n%d", i)) }

func run() error {
	figures := map[string]float64{}
	for name, measure := range map[string]func() (server, client float64, err error){"uplink": relayed, "quic": unadorned} {
		server, client, err := measure()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		figures[name+"_relay_kib"], figures[name+"_host_kib"] = server, client
	}
	for _, side := range []string{"relay", "host"} {
		up, bare := figures["uplink_"+side+"_kib"], figures["quic_"+side+"_kib"]
		fmt.Printf("one of %d idle uplinks at the %-6s %6.1f KiB; quic-go alone %6.1f KiB, ratio %.2f\n", *uplinks, side+":", up, bare, up/bare)
	}
	if *file == "" {
		return nil
	}
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(b, '\n'), 0o644)
}

// relayed measures the memory of an uplink at the relay and at the host.
func relayed() (atRelay, atHost float64, err error) {
	relay, kept := &pair.Pair{}, &pair.Pair{}
	defer relay.Stop()
	defer kept.Stop()
	defer func() {
		if r := recover(); r != nil { // a panic of pair's testing.TB
			err = fmt.Errorf("%v", r)
		}
	}()
	ca := kit.NewCA()
	gate := agenttest.NewHost(relay.TB(), "gate", ca)
	states, err := relay.Dir()
	if err != nil {
		return 0, 0, err
	}
	at := agenttest.Loopback().String()
	f := document.Forwarder{Listen: []string{at}, Relay: &document.Relaying{ID: kit.ID("vertex/gate")}}
	for i := range *uplinks {
		f.Relay.Routes = append(f.Relay.Routes, document.RelayRoute{Label: fmt.Sprintf("%032x", i), To: node(i), From: []spiffe.ID{agenttest.Laptop}})
		h := agenttest.NewHost(relay.TB(), node(i).Name(), ca)
		h.Layout = state(states, i)
		h.Accept(document.Forwarder{})
		h.Deliver(ca, node(i), time.Hour)
	}
	gate.Accept(f, f.Relay.ID)
	gate.Deliver(ca, kit.ID("node/gate"), time.Hour)
	gate.Deliver(ca, f.Relay.ID, time.Hour)
	if err := relay.StartForwarders(gate); err != nil {
		return 0, 0, err
	}
	connected := func() (n int, err error) {
		r, _, err := status.Fetch(context.Background(), gate.Socket())
		return len(r.PeerConnections), err
	}
	return grow(relay, kept, func(n int) error {
		return kept.StartSelf(fmt.Sprintf("%s=%s %s %d", hostsEnv, states, at, n))
	}, connected)
}

// grow measures the memory that each connection adds to a server and to a client, in KiB. The
// function start starts a client with a number of connections.
func grow(server, client *pair.Pair, start func(n int) error, connected func() (int, error)) (atServer, atClient float64, err error) {
	var resident [2][2]float64
	for i, n := range []int{1, *uplinks} {
		if err := start(n); err != nil {
			return 0, 0, err
		}
		if err := pair.Wait(func() error {
			if got, err := connected(); err != nil || got < n {
				return fmt.Errorf("%d of %d connections: %w", got, n, err)
			}
			return nil
		}); err != nil {
			return 0, 0, err
		}
		time.Sleep(settle)
		for side, p := range []*pair.Pair{server, client} {
			if resident[side][i], err = p.Resident(); err != nil {
				return 0, 0, err
			}
		}
		client.Snapshot()
		server.Snapshot()
		client.Stop()
		*client = pair.Pair{}
	}
	per := func(side int) float64 { return (resident[side][1] - resident[side][0]) * 1024 / float64(*uplinks-1) }
	return per(0), per(1), nil
}

// hosts keeps the uplinks of all hosts. It runs in its own process.
func hosts(words []string) error {
	n, err := strconv.Atoi(words[2])
	if err != nil {
		return err
	}
	relay, err := spiffe.Dial(kit.ID("vertex/gate"))
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	over := &quic.Transport{Conn: socket}
	for i := range n {
		layout := state(words[0], i)
		doc, err := layout.Manifest()
		if err != nil {
			return err
		}
		set, problems := hostdir.LoadSVIDs(layout, doc.Manifest(), &hostdir.SVIDSet{})
		if len(problems) > 0 {
			return problems[0]
		}
		server := transport.Server{Identities: func() *hostdir.SVIDSet { return set }, Rejected: func(transport.Rejection) {}}
		server.Uplink(transport.UplinkTo{
			Relay: relay, Addresses: document.Addresses{words[1]}, Node: node(i), Transport: document.OverQUIC,
			Dial: func(ctx context.Context, to *net.UDPAddr, conf *tls.Config, q *quic.Config) (*quic.Conn, *transport.Listener, error) {
				c, err := over.Dial(ctx, to, conf, q)
				return c, nil, err
			},
			Outside: &transport.Outside{},
		})
	}
	return untilStopped()
}

func untilStopped() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}

// unadorned measures the memory of a quic-go connection with client certificates, at the server and
// at the client.
func unadorned() (atServer, atClient float64, err error) {
	server, client := &pair.Pair{}, &pair.Pair{}
	defer server.Stop()
	defer client.Stop()
	at := agenttest.Loopback().String()
	if err := server.StartSelf(bareEnv + "=" + at + " 0"); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	return grow(server, client, func(n int) error {
		began = time.Now()
		return client.StartSelf(fmt.Sprintf("%s=%s %d", bareEnv, at, n))
	}, func() (int, error) {
		if time.Since(began) < 2*settle {
			return 0, nil
		}
		return *uplinks, nil // a client that cannot connect has ended, so its memory cannot be measured
	})
}

// bare runs a server or a client of quic-go. It runs in its own process.
func bare(words []string) error {
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	ca := kit.NewCA()
	conf := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"bare"}, Certificates: []tls.Certificate{*ca.Issue(node(0), time.Hour)},
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true, SessionTicketsDisabled: true,
		VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return nil },
	}
	q := &quic.Config{KeepAlivePeriod: time.Second, MaxIdleTimeout: time.Minute, EnableDatagrams: true}
	if n == 0 {
		l, err := quic.ListenAddr(words[0], conf, q)
		if err != nil {
			return err
		}
		go func() {
			for {
				if _, err := l.Accept(context.Background()); err != nil {
					return
				}
			}
		}()
		return untilStopped()
	}
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	over := &quic.Transport{Conn: socket}
	to, err := net.ResolveUDPAddr("udp", words[0])
	if err != nil {
		return err
	}
	for range n {
		if _, err := over.Dial(context.Background(), to, conf, q); err != nil {
			return err
		}
	}
	return untilStopped()
}
