package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/join"
)

// Providers contains clients of all config providers of a cluster. Some methods call each provider.
// Others call one provider after the other, and stop when one answers. A method fails only if no
// provider answers. It prints a warning on standard error for each provider that does not answer.
type Providers []*Provider

// All calls do with each provider. If do fails for every provider, All returns the errors. If it
// fails only for some, All prints the errors as warnings.
func (p Providers) All(do func(*Provider) error) error {
	var failed []error
	for _, at := range p {
		if err := do(at); err != nil {
			failed = append(failed, err)
		}
	}
	return p.Failed(failed)
}

// First calls do with one provider after the other until do succeeds. If it fails for every
// provider, First returns the errors.
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

// Each calls a function with each provider, and returns the items from all providers. Providers
// that share a state store return the same items, so Each returns items with the same key only
// once.
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

// Reports returns the newest report of each host, by the name of the host. It calls all providers
// for this.
func (p Providers) Reports(ctx context.Context) (map[string]hostreport.Kept, error) {
	newest := map[string]hostreport.Kept{}
	err := p.All(func(at *Provider) error { return at.addReports(ctx, newest) })
	return newest, err
}

// Hosts returns the newest report of each host, and the join requests that wait for approval. Both
// maps have the name of the host as key, and combine the answers of all providers.
func (p Providers) Hosts(ctx context.Context) (newest map[string]hostreport.Kept, waiting map[string]join.Request, err error) {
	newest, waiting = map[string]hostreport.Kept{}, map[string]join.Request{}
	err = p.All(func(at *Provider) error {
		if err := at.addReports(ctx, newest); err != nil {
			return err
		}
		joins, err := at.Joins(ctx)
		for _, r := range joins {
			if r.State == hostapi.JoinPending {
				waiting[r.Host] = r
			}
		}
		return err
	})
	return newest, waiting, err
}

// addReports adds the provider's reports to the map newest, unless the map has newer reports of the
// same hosts.
func (p *Provider) addReports(ctx context.Context, newest map[string]hostreport.Kept) error {
	reports, err := p.Reports(ctx)
	for host, r := range reports {
		if r.Sequence > newest[host].Sequence {
			newest[host] = r
		}
	}
	return err
}

// Stopped returns, by the name of the host, why config providers serve no hosts: for example
// because their systemd unit has failed. It checks only providers that are reached over SSH,
// because a provider that answers through the forwarder is running.
func (p Providers) Stopped(ctx context.Context) map[string]hostreport.Problem {
	found := map[string]hostreport.Problem{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for _, at := range p {
		if at.root == nil {
			continue
		}
		all.Go(func() {
			u, err := at.root.unit(ctx, distribution.Name)
			if err != nil { // a warning or an error of the calls names the host
				return
			}
			if problem, well := u.Problem(); !well {
				lock.Lock()
				defer lock.Unlock()
				found[at.Host] = problem
			}
		})
	}
	all.Wait()
	return found
}

// Audit yields the rows of all audit logs that can be read through the providers, oldest first.
// Call the function end afterwards. It prints a warning for each provider that did not answer. If
// no provider answered, it returns an error instead.
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

// Failed prints the given errors as warnings if some providers answered. If there are as many
// errors as providers, none answered, and Failed returns the errors.
func (p Providers) Failed(failed []error) error {
	if len(failed) == len(p) {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(terminal.Writer(os.Stderr), "warning:", err)
	}
	return nil
}
