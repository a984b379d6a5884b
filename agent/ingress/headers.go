package ingress

import (
	"slices"

	"github.com/florete/florete/agent/forward/announce"
)

// strangersClaims are request headers in which a proxy, a CDN or a load balancer tells a service
// who its client is and what it requested. An ingress has none of these before it, so they are
// the stranger's own words, and are removed. The ingress sets X-Real-IP, X-Forwarded-For,
// X-Forwarded-Host and X-Forwarded-Proto itself.
var strangersClaims = slices.Concat(announce.ClientAddresses, []string{
	"Forwarded",
	"X-Forwarded-By",
	"X-Forwarded-Client-Cert",
	"X-Forwarded-Email",
	"X-Forwarded-Groups",
	"X-Forwarded-Port",
	"X-Forwarded-Preferred-Username",
	"X-Forwarded-Prefix",
	"X-Forwarded-Protocol",
	"X-Forwarded-Scheme",
	"X-Forwarded-Server",
	"X-Forwarded-Ssl",
	"X-Forwarded-Uri",
	"X-Forwarded-User",
	"X-Original-Host",
	"X-Original-URL",
	"X-Rewrite-URL",
})
