package ingress

import (
	"slices"

	"github.com/florete/florete/agent/forward/announce"
)

// strangersClaims lists request headers with which a proxy, CDN or load balancer describes its
// client to a service. An ingress has no such program in front of it, so these headers are set by
// the client itself and are removed. The ingress sets X-Real-IP, X-Forwarded-For, X-Forwarded-Host
// and X-Forwarded-Proto.
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
