package laws

import "maps"

func init() { maps.Copy(edits, registrationEdits) }

// An external issuer has its own users, and none of them supports everything that services may
// request.
var registrationEdits = map[string]func(generator, *cluster) bool{
	"an issuer of others": registersAt("https://127.0.0.1:1/register", "", "allowedGroups", "claims", "groups"),
	"a Kanidm":            registersAt("https://127.0.0.1:1", "kanidm", "postLogoutRedirectURIs", "claims", "groups"),
	"a Pocket ID":         registersAt("https://127.0.0.1:1", "pocket-id", "scopes", "claims", "groups"),
}

// registersAt makes services clients of an external issuer, registered in one way, without the
// attributes that it lacks.
func registersAt(url, how string, lacks ...string) func(generator, *cluster) bool {
	return func(_ generator, c *cluster) bool {
		for _, s := range c.Services {
			if s.SSO != nil {
				s.SSO = maps.Clone(s.SSO)
				for _, attribute := range lacks {
					delete(s.SSO, attribute)
				}
			}
		}
		p, had := c.Providers["oidc"]
		p.LDAP, p.Upstream, p.Register, p.How = nil, nil, url, how
		c.Providers["oidc"] = p
		return had
	}
}
