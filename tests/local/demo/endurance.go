package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/local"
)

// audit returns the audit log of the provider, which contains a row for each granted request.
func (s *demo) audit(ctx context.Context) ([]local.Decision, error) {
	return s.Audit(ctx, s.hosts[forge], time.Time{})
}

// crash kills and restarts the provider three times while hosts send requests. At the end, every
// need must be fulfilled, and every request must have been granted exactly once.
func (s *demo) crash(ctx context.Context) error {
	s.heading("the provider is killed while hosts ask, and started again")
	before, err := s.audit(ctx)
	if err != nil {
		return err
	}
	clientBefore, err := s.hosts["ursula"].OIDCClient("oidc-outline")
	if err != nil {
		return err
	}
	h := s.hosts[forge]
	asking := []*local.Host{s.hosts["raishan"], s.hosts["ursula"], s.hosts["mgmt01"]}
	done := func() bool {
		return !slices.ContainsFunc(asking, func(host *local.Host) bool { return !host.Fulfilled() })
	}
	const kills = 3
	struck := 0
	for i := range kills {
		for _, host := range asking {
			for _, n := range host.Manifest.Needs {
				if n.Kind == "cert" && n.ID != "cert-node" || n.Kind == "oidc" {
					if err := os.RemoveAll(host.Layout().Need(n.ID)); err != nil {
						return err
					}
				}
			}
			if err := host.Activate(); err != nil {
				return err
			}
		}
		for end := time.Now().Add(local.Limit); time.Now().Before(end) && !slices.ContainsFunc(asking, (*local.Host).Requesting) && !done(); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(5*i) * time.Millisecond) // each time a little later
		for _, part := range parts() {
			if err := h.Stop(part, syscall.SIGKILL); err != nil {
				return err
			}
		}
		if slices.ContainsFunc(asking, (*local.Host).Requesting) {
			struck++
		}
		if err := h.Provide(kinds...); err != nil {
			return err
		}
		if err := s.until(ctx, "needs fulfilled after the kill", done); err != nil {
			return err
		}
		for _, host := range asking {
			if err := host.Stop("activate", syscall.SIGTERM); err != nil {
				return err
			}
		}
	}
	after, err := s.audit(ctx)
	if err != nil {
		return err
	}
	twice := 0
	granted := map[string]int{}
	for _, d := range after[len(before):] {
		if d.Decision == "granted" && d.Key != "" && !d.Replayed {
			if granted[d.Key]++; granted[d.Key] == 2 {
				twice++
			}
		}
	}
	s.held(&s.laws, "nothing is issued twice for one request", twice == 0, fmt.Sprintf("%d kills, %d of them amid requests, %d granted, %d of them twice", kills, struck, len(granted), twice))
	clientAfter, err := s.hosts["ursula"].OIDCClient("oidc-outline")
	if err != nil {
		return err
	}
	s.held(&s.laws, "the OIDC client survives the kills", fmt.Sprint(clientAfter) == fmt.Sprint(clientBefore), "client "+clientAfter["client-id"])
	return nil
}

// wipe deletes the disk of a host. The host must then enrol again and receive the same OIDC client
// as before.
func (s *demo) wipe(ctx context.Context) error {
	s.heading("ursula loses its disk and enrols again")
	h := s.hosts["ursula"]
	before, err := h.OIDCClient("oidc-outline")
	if err != nil {
		return err
	}
	if err := h.Stop("agent", syscall.SIGTERM); err != nil {
		return err
	}
	if err := os.RemoveAll(string(h.Layout())); err != nil {
		return err
	}
	if err := h.Activate(); err != nil {
		return err
	}
	if err := h.Agent(); err != nil {
		return err
	}
	if err := s.until(ctx, "ursula's needs fulfilled again", h.Fulfilled); err != nil {
		return err
	}
	after, err := h.OIDCClient("oidc-outline")
	if err != nil {
		return err
	}
	s.held(&s.laws, "a wiped host gets the same OIDC client", fmt.Sprint(after) == fmt.Sprint(before), "client "+after["client-id"])
	s.reaches(ctx, "alice to outline on the wiped host", "outline", func() (string, error) { return s.curlSOCKS(ctx, newcomer, "user/alice", "outline") })
	return nil
}

// rollBack switches the host ursula to its previous generation, as an operator may do. If the
// network offers the same old document, ursula must refuse it.
func (s *demo) rollBack(ctx context.Context) error {
	s.heading("ursula is switched back to its previous generation, from before %s", newcomer)
	h := s.hosts["ursula"]
	if err := h.Deploy(s.Path("older", h.Name)); err != nil {
		return err
	}
	if err := h.Activate(); err != nil {
		return err
	}
	const refused = "SOCKS5"
	var refusal error
	err := s.until(ctx, "alice being refused", func() bool {
		_, refusal = s.curlSOCKS(ctx, newcomer, "user/alice", "outline")
		return refusal != nil && strings.Contains(refusal.Error(), refused) // a request under way is cut off
	})
	if err != nil {
		return err
	}
	s.refused("alice, whom the previous generation does not know", refusal, refused)
	s.reaches(ctx, "mgmt01 to outline on the previous generation", "outline", func() (string, error) { return s.curlSOCKS(ctx, "mgmt01", "node/mgmt01", "outline") })

	s.heading("ursula is switched forward; an attacker serves the older document over the network")
	if err := h.Deploy(s.Path("newer", h.Name)); err != nil {
		return err
	}
	if err := h.Activate(); err != nil {
		return err
	}
	s.reaches(ctx, "alice to outline again", "outline", func() (string, error) { return s.curlSOCKS(ctx, newcomer, "user/alice", "outline") })
	older, err := os.Open(s.Signed("older"))
	if err != nil {
		return err
	}
	defer older.Close()
	// While one provider takes over from the other, neither of them answers.
	answered := func() bool {
		refusal = s.refetch(ctx, h.Name)
		return refusal == nil || !strings.Contains(refusal.Error(), hostapi.CodeUnavailable.Name)
	}
	err = s.breakIn(ctx, older, s.hosts[forge].Manifest.Trust.SigningKeys, func() error {
		return s.until(ctx, "the older document being refused", func() bool { return answered() && refusal != nil })
	})
	if err != nil {
		return err
	}
	s.refused("the older document over the network", refusal, "older")
	s.reaches(ctx, "alice to outline after that", "outline", func() (string, error) { return s.curlSOCKS(ctx, newcomer, "user/alice", "outline") })
	if err := s.until(ctx, "the newest documents once more", answered); err != nil {
		return err
	}
	if refusal != nil {
		return fmt.Errorf("the newest documents once more: %w", refusal)
	}
	return nil
}

// refetch makes a host request its documents now. If the host refuses them, refetch returns the
// reason.
func (s *demo) refetch(ctx context.Context, host string) error {
	h := s.hosts[host]
	if err := h.Stop("activate", syscall.SIGTERM); err != nil {
		return err
	}
	const need = "config-documents"
	if err := os.RemoveAll(h.Layout().Need(need)); err != nil {
		return err
	}
	if _, _, err := h.Once(ctx); err != nil {
		return err
	}
	all, err := h.Needs()
	if err != nil {
		return err
	}
	if e := all[need].Error; e != nil && all[need].State != "fulfilled" {
		return fmt.Errorf("%s: %s", e.Code, e.Message)
	}
	return nil
}
