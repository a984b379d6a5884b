package oidc

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	dexconn "github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/connector/ldap"

	"github.com/florete/florete/internal/sockdiag"
)

// Directory is an LDAP directory whose users can sign in at the embedded OpenID Connect provider.
type Directory struct {
	Title  string `json:"title"`
	Server string `json:"server"` // ldaps://host[:port], or ldap:// with StartTLS; unencrypted on loopback only
	Roots  string `json:"roots"`  // root certificates in PEM; empty for those of the system
	BindDN string `json:"bindDN"` // account for searching the directory, with the secret as its password; empty for none
	People struct {
		Base   string `json:"base"`
		Filter string `json:"filter"`
		Login  string `json:"login"` // attribute that people sign in with
		ID     string `json:"id"`
		Email  string `json:"email"`
		Name   string `json:"name"`
	} `json:"people"`
	Groups struct {
		Base   string `json:"base"` // empty for none
		Filter string `json:"filter"`
		Person string `json:"person"` // attribute of people that groups name them by
		Member string `json:"member"` // attribute of groups that names people
		Name   string `json:"name"`
	} `json:"groups"`
}

// ldapConfig is the configuration with which Dex opens an ldapConnector.
type ldapConfig struct {
	LDAP   ldap.Config `json:"ldap"`
	Secret string      `json:"secret"` // path
}

func (d Directory) config() (c ldap.Config, err error) {
	u, err := url.Parse(d.Server)
	if err != nil || (u.Scheme != "ldap" && u.Scheme != "ldaps") || u.Host == "" || d.Server != u.Scheme+"://"+u.Host {
		return c, fmt.Errorf("server %q: want ldaps://<host>[:<port>] or ldap://<host>[:<port>]", d.Server)
	}
	c = ldap.Config{Host: u.Host, BindDN: d.BindDN, RootCAData: []byte(d.Roots)}
	if u.Scheme == "ldap" {
		ip := net.ParseIP(u.Hostname())
		c.InsecureNoSSL = ip.IsLoopback() || u.Hostname() == "localhost"
		c.StartTLS = !c.InsecureNoSSL
		if u.Port() == "" {
			c.Host = net.JoinHostPort(u.Hostname(), "389")
		}
	}
	people := &c.UserSearch
	people.BaseDN, people.Filter, people.Username = d.People.Base, d.People.Filter, d.People.Login
	people.IDAttr, people.EmailAttr, people.NameAttr, people.PreferredUsernameAttrAttr = d.People.ID, d.People.Email, d.People.Name, d.People.Login
	groups := &c.GroupSearch
	groups.BaseDN, groups.Filter, groups.NameAttr = d.Groups.Base, d.Groups.Filter, d.Groups.Name
	groups.UserMatchers = []ldap.UserMatcher{{UserAttr: d.Groups.Person, GroupAttr: d.Groups.Member}}
	// Problems with the certificates show at a sign-in, as those of the directory do.
	without := c
	without.RootCAData = nil
	_, err = without.OpenConnector(slog.New(slog.DiscardHandler))
	return c, err
}

// Open returns a connector, with which Dex signs people in through the directory. It does not
// connect to the directory yet. It implements Dex's connector configuration.
func (c *ldapConfig) Open(_ string, log *slog.Logger) (dexconn.Connector, error) {
	return &ldapConnector{*c, log, make(elsewhere, elsewhereAtOnce)}, nil
}

// ldapConnector wraps Dex's connector for LDAP. Unlike that connector, it reads groups for all
// scopes, uses the secret that is in the file at present, and has a timeout.
type ldapConnector struct {
	ldapConfig
	log     *slog.Logger
	waiting elsewhere
}

var (
	_ dexconn.PasswordConnector = (*ldapConnector)(nil)
	_ dexconn.RefreshConnector  = (*ldapConnector)(nil)
)

// Prompt returns the label of the field for the user name.
func (c *ldapConnector) Prompt() string { return "Username" }

type dexLDAP interface {
	dexconn.PasswordConnector
	dexconn.RefreshConnector
}

func (c *ldapConnector) open() (dexLDAP, error) {
	config := c.LDAP
	if config.InsecureNoSSL { // on this host, in clear
		ctx, cancel := context.WithTimeout(context.Background(), elsewherePatience)
		defer cancel()
		conn, err := sockdiag.Dial(ctx, config.Host, nil, sockdiag.System)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", config.Host, err)
		}
		conn.Close()
	}
	if config.BindDN != "" {
		secret, err := readSecret(c.Secret)
		if err != nil {
			return nil, fmt.Errorf("the password of %s: %w", config.BindDN, err)
		}
		config.BindPW = secret
	}
	// Dex logs names of people.
	return config.OpenConnector(slog.New(slog.DiscardHandler))
}

// Login checks the password of a person. For a wrong password, the second result is false. If the
// directory cannot be used, Login returns an error, and the person sees a page that says so.
func (c *ldapConnector) Login(ctx context.Context, s dexconn.Scopes, username, password string) (dexconn.Identity, bool, error) {
	type answer struct {
		id    dexconn.Identity
		right bool
	}
	s.Groups = true
	a, err := within(ctx, c.waiting, func() (a answer, err error) {
		conn, err := c.open()
		if err == nil {
			a.id, a.right, err = conn.Login(ctx, s, username, password)
		}
		return a, err
	})
	if in := signInOf(ctx); err != nil && in != nil {
		in.instead = &instead{http.StatusServiceUnavailable, "Not now",
			"The directory that knows your password could not be used. Wait a minute and try again; the log of the provider has the reason."}
	}
	return a.id, a.right, err
}

// Refresh reads a person's entry in the directory again before a token is refreshed. If the person
// no longer exists, or if the name now belongs to another person, Refresh returns an error and
// marks the token as invalid.
func (c *ldapConnector) Refresh(ctx context.Context, s dexconn.Scopes, id dexconn.Identity) (dexconn.Identity, error) {
	s.Groups = true
	id, err := within(ctx, c.waiting, func() (dexconn.Identity, error) {
		conn, err := c.open()
		if err != nil {
			return id, err
		}
		return conn.Refresh(ctx, s, id)
	})
	if err != nil && (strings.Contains(err.Error(), "user not found") || strings.Contains(err.Error(), "expected DN")) {
		exchangeOf(ctx).ended = "the directory has no such person any more"
	}
	return id, err
}
