package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/bench/pair"
	"github.com/florete/florete/tests/kit"
)

const roleProvider = "provider"

// provide runs the provider in its own process. Each line of its input names a version to import,
// or a step of the benchmark that has ended and whose profiles the provider writes. The provider
// replies with the time at which it began and with the duration.
func provide(c cluster) error {
	server.TuneRuntime()
	state, err := os.MkdirTemp("", "fleet") // a directory on a disk that flushes
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	issuing, err := ca.Load(c.path("issuing.crt"), c.path("issuing.key"))
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(c.path("root.crt"))
	if err != nil {
		return err
	}
	if c.roots, err = trust.NewRoots(kit.Domain, []string{string(pem)}); err != nil {
		return err
	}
	c.ca = &kit.CA{Issuing: issuing}
	openStore, end, err := open(c.engine, state)
	if err != nil {
		return err
	}
	defer end()
	var versions archive.Archive
	var all sync.WaitGroup
	for _, kind := range []string{cert.Name, distribution.Name} {
		db, err := openStore(kind)
		if err != nil {
			return err
		}
		defer db.Close()
		if err := answers(ctx, db); err != nil {
			return err
		}
		if kind == distribution.Name {
			versions = archive.Archive{Store: db}
		}
		s, l, err := c.server(kind, state, db)
		if err != nil {
			return err
		}
		all.Go(func() {
			if err := s.Serve(ctx, l); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
			}
		})
	}
	bare, err := c.listenBare()
	if err != nil {
		return err
	}
	defer bare.Close()
	profiled, err := profile()
	if err != nil {
		return err
	}
	public, err := os.ReadFile(c.path("signing.pub"))
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began := time.Now()
		if step, is := strings.CutPrefix(lines.Text(), "profile "); is {
			profiled("provider-" + step)
			if profiled, err = profile(); err != nil {
				return err
			}
		} else if err := importVersion(ctx, versions, c.path("publication"), string(public)); err != nil {
			return err
		}
		fmt.Println(began.UnixNano(), time.Since(began).Seconds())
	}
	cancel()
	all.Wait()
	return nil
}

// answers waits until a store answers, because the members of etcd must first elect a leader.
func answers(ctx context.Context, s store.Store) error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, _, err := s.List(ctx, "")
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// server returns the server for a kind of need and its listener.
func (c cluster) server(kind, state string, db store.Store) (*server.Server, net.Listener, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	policies, err := server.OpenPolicies(c.path("policy"), c.path("revocations.json"), kind, log)
	if err != nil {
		return nil, nil, err
	}
	key, err := sealedstore.Load(state + "/" + kind + ".key")
	if err != nil {
		return nil, nil, err
	}
	sc := server.Config{Policies: policies, Store: db, Key: key, Logger: log}
	switch kind {
	case cert.Name:
		issuing := &ca.Kept{Certificate: c.path("issuing.crt"), Key: c.path("issuing.key")}
		issuer := cert.New(cert.Config{
			Store: db, Key: key, Policy: server.Compiled[cert.Policy](policies),
			Authority: issuing.Load, CRL: state + "/crl.pem",
		})
		sc.Kind, sc.Certificate = server.Any(issuer), issuer.Certificate
	default:
		svid := c.ca.Issue(policies.Self().ID, 24*time.Hour)
		sc.Kind, sc.Certificate = distribution.New(archive.Archive{Store: db}).Kind(), func() (*tls.Certificate, error) { return svid, nil }
	}
	s, err := server.New(sc)
	if err != nil {
		return nil, nil, err
	}
	l, err := server.Listen(policies.Self().Listen)
	return s, l, err
}

func importVersion(ctx context.Context, a archive.Archive, path, key string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := archive.NewStreamReader(f)
	if err != nil {
		return err
	}
	_, _, err = a.Import(ctx, r, archive.Terms{Signers: signers.Any(strings.TrimSpace(key)), Keep: 10})
	return err
}

// profile starts a profile of the processor, if pair.ProfileEnv names a directory. It returns a
// function that stops the profile and writes it, with profiles of memory and goroutines. The names
// of the files begin with the argument of this function.
func profile() (stop func(name string), err error) {
	dir := os.Getenv(pair.ProfileEnv)
	if dir == "" {
		return func(string) {}, nil
	}
	var cpu bytes.Buffer
	return func(name string) {
		pprof.StopCPUProfile()
		err := os.WriteFile(dir+"/"+name+".cpu", cpu.Bytes(), 0o644)
		for _, kind := range []string{"heap", "goroutine"} {
			heap, failed := os.Create(dir + "/" + name + "." + kind)
			if failed == nil {
				failed = errors.Join(pprof.Lookup(kind).WriteTo(heap, 0), heap.Close())
			}
			err = errors.Join(err, failed)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
	}, pprof.StartCPUProfile(&cpu)
}
