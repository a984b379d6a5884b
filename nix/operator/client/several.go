package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/auditview"
)

// Providers contains clients of all config providers of a cluster. Operations go to all of them, or
// to the first that answers. Providers that do not answer are named in a warning on standard error;
// an operation fails if none answers.
type Providers []*Provider

// All calls do with each provider.
func (p Providers) All(do func(*Provider) error) error {
	var failed []error
	for _, at := range p {
		if err := do(at); err != nil {
			failed = append(failed, err)
		}
	}
	return p.Failed(failed)
}

// First calls do with one provider after the other until one succeeds.
func (p Providers) First(do func(*Provider) error) error {
	var failed []error
	for _, at := range p {
		err := do(at)
		if err == nil {
			break
		}
		failed = append(failed, err)
	}
	return p.Failed(failed)
}

// Each returns the items of all providers without duplicates, because providers that share a store
// have the same ones.
func Each[V any](p Providers, of func(*Provider) ([]V, error), key func(V) string) ([]V, error) {
	found, seen := []V{}, map[string]bool{}
	err := p.All(func(at *Provider) error {
		some, err := of(at)
		for _, v := range some {
			if !seen[key(v)] {
				seen[key(v)] = true
				found = append(found, v)
			}
		}
		return err
	})
	return found, err
}

// Reports returns the newest report of each host that any provider has.
func (p Providers) Reports(ctx context.Context) (map[string]hostreport.Kept, error) {
	newest := map[string]hostreport.Kept{}
	err := p.All(func(at *Provider) error {
		reports, err := at.Reports(ctx)
		for host, r := range reports {
			if r.Sequence > newest[host].Sequence {
				newest[host] = r
			}
		}
		return err
	})
	return newest, err
}

// Audit returns the rows of all audit logs that can be read. After the rows, end prints a warning
// for providers that did not answer, and returns an error if none did.
func (p Providers) Audit(ctx context.Context, since auditview.Moment) (log iter.Seq2[auditview.Row, error], end func() error) {
	var logs []iter.Seq2[auditview.Row, error]
	var failed []error
	for _, at := range p {
		logs = append(logs, func(yield func(auditview.Row, error) bool) {
			for r, err := range at.Audit(ctx, since) {
				if err != nil {
					failed = append(failed, err)
					return
				}
				if !yield(r, nil) {
					return
				}
			}
		})
	}
	return auditview.Merge(logs), func() error { return p.Failed(failed) }
}

// Failed prints a warning for providers that did not answer, and returns an error if none did.
func (p Providers) Failed(failed []error) error {
	if len(failed) == len(p) {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(terminal.Writer(os.Stderr), "warning:", err)
	}
	return nil
}
