package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/local"
)

// demo is the running example cluster, with the results that the demo has collected so far.
type demo struct {
	options
	hosts    map[string]*local.Host
	password string // password of Alice at the OIDC provider
	started  time.Time
	took     map[string]float64 // seconds from start to fulfilled, by host/need
	attempts map[string]int     // highest number of attempts seen, by host/need
	paths    []check
	refusals []check
	laws     []check
	serial   int64 // serial of the newer revision
	seconds  float64
}

// check is a condition that the demo has checked, together with the result.
type check struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
}

// runDemo runs the demo and reports whether all conditions were met.
func runDemo(ctx context.Context, o options) (ok bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Work == "" {
		if o.Work, err = os.MkdirTemp("", "florete-demo-"); err != nil {
			return false, err
		}
		defer func() {
			if ok && err == nil {
				_ = os.RemoveAll(o.Work)
			} else {
				fmt.Println("demo: what happened is in", o.Work)
			}
		}()
	}
	s := &demo{options: o, hosts: map[string]*local.Host{}, password: rand.Text(), took: map[string]float64{}, attempts: map[string]int{}}
	for _, name := range hostNames {
		s.hosts[name] = &local.Host{Name: name, Dir: s.Path("hosts", name), Bin: s.Bin}
	}
	defer s.stopAll()

	s.heading("an operator prepares keys, a root CA and two revisions of the flake")
	if err := s.prepare(ctx); err != nil {
		return false, err
	}
	if err := s.serve(ctx); err != nil {
		return false, err
	}
	s.started = time.Now()
	for _, chapter := range []func(context.Context) error{s.arrive, s.talk, s.strangers, s.logInOnce, s.refuse, s.again, s.crash, s.wipe, s.rollBack, s.rotate} {
		if err := chapter(ctx); err != nil {
			return false, err
		}
	}
	s.seconds = time.Since(s.started).Seconds()
	ok, err = s.report()
	if err == nil && o.keep {
		s.howToUse()
		<-ctx.Done()
	}
	return ok, err
}

func (s *demo) heading(format string, args ...any) {
	at := 0.0
	if !s.started.IsZero() {
		at = time.Since(s.started).Seconds()
	}
	fmt.Printf("%5.1fs  %s\n", at, fmt.Sprintf(format, args...))
}

// held adds a checked condition to one of the lists of checks.
func (s *demo) held(list *[]check, name string, ok bool, found string) {
	*list = append(*list, check{name, ok, found})
	mark := "ok"
	if !ok {
		mark = "NOT OK"
	}
	s.heading("  %-6s %s: %s", mark, name, found)
}

// kinds lists the kinds of need that the host forge serves as the provider of the demo.
var kinds = []string{"cert", "config", "file", "oidc"}

// parts returns the names of the provider processes on the host forge.
func parts() (all []string) {
	for _, kind := range kinds {
		all = append(all, local.ProviderPart(kind))
	}
	return all
}

func (s *demo) stopAll() {
	for _, part := range append([]string{"agent", "activate"}, parts()...) {
		for _, h := range s.hosts {
			if err := h.Stop(part, syscall.SIGTERM); err != nil {
				fmt.Fprintln(os.Stderr, "demo:", err)
			}
		}
	}
}

// publish makes the config provider serve the documents of the named revision.
func (s *demo) publish(ctx context.Context, name string) error {
	return s.Publish(ctx, s.hosts[forge], name)
}

// breakIn simulates an intruder who controls the config provider. While the function do runs, the
// store of the provider is replaced by one that contains a forged publication. The intruder needs
// another store, because the provider itself would refuse to import this publication.
func (s *demo) breakIn(ctx context.Context, stream io.Reader, keys []string, do func() error) error {
	h, part := s.hosts[forge], local.ProviderPart(distribution.Name)
	dir := filepath.Join(h.Dir, "provider", distribution.Name)
	replaced := func(from, to string) error {
		return errors.Join(h.Stop(part, syscall.SIGTERM), os.Rename(from, to))
	}
	if err := replaced(dir, dir+".kept"); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	db, err := sqlite.Open(filepath.Join(dir, "state.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	r, err := archive.NewStreamReader(stream)
	if err == nil {
		_, _, err = archive.Archive{Store: db}.Import(ctx, r, archive.Terms{Signers: signers.Any(keys...), Keep: 1})
	}
	if err := errors.Join(err, db.Close(), h.Provide(distribution.Name), do(), replaced(dir, dir+".evil"), os.RemoveAll(dir+".evil")); err != nil {
		return err
	}
	return errors.Join(os.Rename(dir+".kept", dir), h.Provide(distribution.Name))
}
