package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
)

// arrive deploys all hosts while the provider is stopped. The provider's own host has documents of
// the previous revision. Then arrive starts the provider, which gets its current policy from the
// published documents.
func (s *demo) arrive(ctx context.Context) error {
	s.heading("five hosts activate; the provider is down")
	for _, name := range hostNames {
		h, revision := s.hosts[name], "newer"
		if name == forge {
			revision = "older"
		}
		if err := h.Deploy(s.Path(revision, name)); err != nil {
			return err
		}
		if err := h.Activate(); err != nil {
			return err
		}
		if err := h.Agent(); err != nil {
			return err
		}
	}
	err := s.until(ctx, "three attempts of every host", func() bool {
		s.watch()
		for _, name := range hostNames {
			if s.attempts[name+"/cert-node"] < 3 {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	s.heading("ursula waits at random, below a bound that doubles from 200ms to 2s: %s", waits(s.hosts["ursula"].Log("activate"), "cert-node"))

	s.heading("the provider comes up with the policy of the revision before, which has no %s", newcomer)
	forge := s.hosts[forge]
	if err := forge.Provide(kinds...); err != nil {
		return err
	}
	if err := s.publish(ctx, "older"); err != nil {
		return err
	}
	behind := func() bool {
		s.watch()
		all, _ := s.hosts[newcomer].Needs()
		e := all["cert-node"].Error
		return e != nil && e.Code == "policy-behind"
	}
	if err := s.until(ctx, newcomer+" waiting with policy-behind", behind); err != nil {
		return err
	}
	all, _ := s.hosts[newcomer].Needs()
	s.held(&s.laws, "a host ahead of its provider waits", true, all["cert-node"].Error.Message)

	s.heading("the new revision is published, and the provider's host fetches it; nobody deploys one")
	if err := s.publish(ctx, "newer"); err != nil {
		return err
	}
	err = s.until(ctx, "the provider's host having fetched it", func() bool { return s.refetch(ctx, forge.Name) == nil })
	if err != nil {
		return err
	}
	if err := forge.Activate(); err != nil {
		return err
	}
	done := func() bool {
		s.watch()
		for _, h := range s.hosts {
			if !h.Fulfilled() {
				return false
			}
		}
		return true
	}
	if err := s.until(ctx, "every need fulfilled", done); err != nil {
		return err
	}
	s.heading("every need of every host is fulfilled")
	notified := s.notified("outline.service")
	s.held(&s.laws, "the unit of outline is notified once that its credentials are there", notified == 1, fmt.Sprintf("notified %d times", notified))
	return s.secret()
}

// talk connects to services, and checks that each connection succeeds or fails as the roles
// require.
func (s *demo) talk(ctx context.Context) error {
	s.heading("hosts and people reach what their roles give them")
	for _, host := range []string{"mgmt01", newcomer} {
		s.reaches(ctx, host+" to outline, local listener", "outline", func() (string, error) { return s.curlLocal(ctx, host, "service/outline") })
	}
	s.reaches(ctx, "mgmt01 to outline, SOCKS5", "outline", func() (string, error) { return s.curlSOCKS(ctx, "mgmt01", "node/mgmt01", "outline") })
	s.reaches(ctx, "alice to outline, SOCKS5", "outline", func() (string, error) { return s.curlSOCKS(ctx, newcomer, "user/alice", "outline") })
	s.reaches(ctx, "alice to wiki, SOCKS5", "wiki", func() (string, error) { return s.curlSOCKS(ctx, newcomer, "user/alice", "wiki") })
	for _, host := range hostNames {
		s.reaches(ctx, host+" to metrics, SOCKS5", "metrics", func() (string, error) { return s.curlSOCKS(ctx, host, "node/"+host, "metrics") })
	}
	for _, host := range []string{forge, "mgmt01"} { // hosts on which the account acts as the node
		s.reaches(ctx, host+" to time, UDP", "the time", func() (string, error) { return s.askTime(host) })
	}
	return nil
}

// reaches calls try until it returns the text want. The first calls may fail, because an agent
// first has to obtain its identity.
func (s *demo) reaches(ctx context.Context, name, want string, try func() (string, error)) {
	var got string
	var err error
	wait := s.until(ctx, name, func() bool {
		got, err = try()
		return err == nil && strings.TrimSpace(got) == want
	})
	found := "answered " + strings.TrimSpace(got)
	if err != nil {
		found = err.Error()
	}
	s.held(&s.paths, name, wait == nil, found)
}

// logInOnce logs Alice in to Outline with the OIDC client that was delivered to Outline's host.
func (s *demo) logInOnce(ctx context.Context) error {
	s.heading("alice logs in to outline by OIDC")
	s.reaches(ctx, "alice's login", "logged in as "+alicesMail, s.logIn)
	return nil
}

// again runs activation on every host once more. Since all needs are fulfilled, no host may send a
// request.
func (s *demo) again(ctx context.Context) error {
	s.heading("every host activates again")
	before, err := s.audit(ctx)
	if err != nil {
		return err
	}
	for _, h := range s.hosts {
		if err := h.Stop("activate", syscall.SIGTERM); err != nil {
			return err
		}
		code, out, err := h.Once(ctx)
		if err != nil {
			return err
		}
		if code != 0 {
			return fmt.Errorf("%s: second activation exits %d: %s", h.Name, code, out)
		}
	}
	after, err := s.audit(ctx)
	if err != nil {
		return err
	}
	n := len(after) - len(before)
	s.held(&s.laws, "a second activation asks for nothing", n == 0, fmt.Sprintf("%d requests", n))
	return nil
}
