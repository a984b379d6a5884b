package ingress

import (
	"slices"

	"github.com/florete/florete/agent/forward/announce"
)

// strangersClaims lists the request headers that the ingress removes. A proxy, CDN or load balancer
// uses these headers to describe its client to a service. No such program is in front of the
// ingress, so the client itself has set the header, and its value could be false. The ingress sets
// X-Real-IP, X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto itself.
var strangersClaims = slices.Concat(announce.ClientAddresses, []string{
	"Forwarded",
	"X-Forwarded-By",
	"X-Forwarded-Client-Cert",
	announce.EmailHeader,
	announce.GroupsHeader,
	"X-Forwarded-Port",
	announce.NameHeader,
	"X-Forwarded-Prefix",
	"X-Forwarded-Protocol",
	"X-Forwarded-Scheme",
	"X-Forwarded-Server",
	"X-Forwarded-Ssl",
	"X-Forwarded-Uri",
	announce.UserHeader,
	"X-Original-Host",
	"X-Original-URL",
	"X-Rewrite-URL",
})
