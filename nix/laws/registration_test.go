package laws

import "maps"

func init() { maps.Copy(edits, registrationEdits) }

// An issuer of others has its own people, and decides who of them may sign in.
var registrationEdits = map[string]func(generator, *cluster) bool{
	"an issuer of others": func(_ generator, c *cluster) bool {
		for _, s := range c.Services {
			if s.SSO != nil {
				s.SSO = maps.Clone(s.SSO)
				delete(s.SSO, "allowedGroups")
			}
		}
		p, had := c.Providers["oidc"]
		p.LDAP, p.Upstream, p.Register, p.How = nil, nil, "https://127.0.0.1:1/register", ""
		c.Providers["oidc"] = p
		return had
	},
	"a Kanidm": func(_ generator, c *cluster) bool {
		for _, s := range c.Services {
			if s.SSO != nil {
				s.SSO = maps.Clone(s.SSO)
				delete(s.SSO, "postLogoutRedirectURIs")
			}
		}
		p, had := c.Providers["oidc"]
		p.LDAP, p.Upstream, p.Register, p.How = nil, nil, "https://127.0.0.1:1", "kanidm"
		c.Providers["oidc"] = p
		return had
	},
	"a Pocket ID": func(_ generator, c *cluster) bool {
		for _, s := range c.Services {
			if s.SSO != nil {
				s.SSO = maps.Clone(s.SSO)
				delete(s.SSO, "scopes")
			}
		}
		p, had := c.Providers["oidc"]
		p.LDAP, p.Upstream, p.Register, p.How = nil, nil, "https://127.0.0.1:1", "pocket-id"
		c.Providers["oidc"] = p
		return had
	},
}
