package plan

// rule describes the rights that a value of a document grants. A rule may grant no rights, because
// the value is harmless or part of what another value grants. The field why then gives the reason.
type rule struct {
	why    string
	grants func(at) []fact
	deeper bool // values below it have rules of their own
}

// rules contains the rules by the path of a value. In a path, "[]" stands for any element of a
// list, and "*" for any name. A value without a rule is a right of its own, so that nothing is
// overlooked.
var rules = withSettings(map[string]rule{
	"manifest.host": {why: "the document's own name"},
	"policy.host":   {why: "the document's own name"},

	"manifest.cluster":             {grants: cluster},
	"policy.cluster":               {grants: cluster},
	"manifest.trustDomain":         {grants: trustDomain},
	"policy.trustDomain":           {grants: trustDomain},
	"manifest.trust.roots[]":       {grants: root},
	"policy.trust.roots[]":         {grants: root},
	"manifest.trust.signingKeys[]": {grants: key},
	"policy.trust.signingKeys[]":   {grants: key},
	"manifest.trust.threshold":     {why: "part of what each signing key may do"},
	"policy.trust.threshold":       {why: "part of what each signing key may do"},

	"manifest.federation[].trustDomain":        {why: "part of whom a root vouches for"},
	"manifest.federation[].bundle":             {grants: func(a at) []fact { return bundle(shown(a.up[0]["trustDomain"]), a.v) }},
	"manifest.federation[].need":               {why: "what the host calls what it fetches"},
	"manifest.forwarder.callers[].federates[]": {grants: federates},

	"manifest.identity.id":         {why: "part of who enrols"},
	"manifest.identity.sshHostKey": {grants: enrol},
	"manifest.identity.joins":      {grants: admitted},
	"policy.devices[].joins":       {grants: admitted},
	"policy.devices[].id":          {why: "part of who enrols"},
	"policy.devices[].sshHostKey":  {grants: enrol},
	"manifest.units.*":             {why: "which of Florete's own units are missed where they do not run"},
	"manifest.roles":               {why: "names alone: what a role leads to is a right of its own"},

	"manifest.providers.*.*.id": {grants: func(a at) []fact {
		node := "node/" + a.path[1]
		return one(Right{a.id(a.v), "provide from", "host " + a.path[1]}, join(node), Right{node, "act as", a.id(a.v)}, Right{node, "provide", a.path[2]})
	}},
	"manifest.providers.*.*.addresses": {why: "whoever answers there must present the provider's identity"},
	"policy.provider.*.id":             {why: "its name follows from its host's, and its certificate is a right"},
	"policy.provider.*.listen[]": {grants: func(a at) []fact {
		return one(Right{"anyone", "connect to", "the " + a.path[1] + " provider of " + a.host() + " at " + shown(a.v)}, join(a.node()))
	}},
	"policy.kinds": {deeper: true, grants: func(a at) (facts []fact) {
		for kind := range object(a.v) {
			facts = append(facts, fact{Right: Right{a.node(), "provide", kind}})
		}
		return facts
	}},
	"policy.kinds.*":          {why: "that it provides is a right; some kinds have no settings", deeper: true},
	"policy.kinds.*.run":      {grants: answers("executable")},
	"policy.kinds.*.url":      {grants: answers("service at")},
	"policy.kinds.*.values[]": {why: "who has an answer is a right, and so is who may read its files"},

	"policy.grants[].caller":     {why: "part of the request"},
	"policy.grants[].need":       {why: "what the caller calls the request"},
	"policy.grants[].kind":       {why: "part of the request"},
	"policy.grants[].generation": {why: "a higher one gives the same caller another of the same"},
	"policy.grants[].request":    {grants: func(a at) []fact { return a.request(a.id(a.up[0]["caller"]), a.up[0]["kind"]) }},

	"policy.operators[].id":     {why: "part of what they may do"},
	"policy.operators[].access": {grants: operator},
	"policy.operators[].until":  {grants: writeUntil("publish at", "the config provider of ")},
	"policy.cache[].id":         {why: "part of what they may do"},
	"policy.cache[].access":     {grants: cacheAccess},
	"policy.cache[].until":      {grants: writeUntil("add paths to", "the binary cache of ")},
	"policy.rollout":            {why: "when hosts are offered what is published anyway"},

	"policy.store.kind":                    {why: "where the state is: who may read it are its replicas"},
	"policy.store.endpoints":               {why: "whoever answers there must present a certificate of the store's CA"},
	"policy.store.from.*":                  {why: "where the state comes from: who may read it are its replicas"},
	"policy.store.keyLifetime":             {grants: keyLifetime},
	"policy.store.replicas.*[].id":         {why: "part of who opens the sealing key"},
	"policy.store.member.name":             {why: "part of the member"},
	"policy.store.member.cluster":          {why: "members present certificates of the store's CA"},
	"policy.store.member.*.called":         {why: "whoever answers there must present a certificate of the store's CA"},
	"policy.store.replicas.*[].sshHostKey": {grants: replica},
	"policy.store.replicas.*[].joins":      {grants: replica},
	"policy.store.member.*.listen[]": {grants: func(a at) []fact {
		return one(Right{"anyone", "connect to", "the store of " + a.host() + " at " + shown(a.v)}, join(a.node()))
	}},

	"manifest.needs[].id":   {why: "part of what is read"},
	"manifest.needs[].kind": {why: "part of the request"},
	"manifest.needs[].for": {grants: func(a at) []fact {
		return one(Right{a.id(a.v), "load", a.id(a.up[0]["id"]) + " on " + a.host()}, a.requested()...)
	}},
	"manifest.needs[].dependsOn":  {why: "order alone: nothing more is fetched"},
	"manifest.needs[].generation": {why: "a higher one gives the same host another of the same"},
	"manifest.needs[].request":    {grants: func(a at) []fact { return a.request(a.node(), a.up[0]["kind"]) }},
	"manifest.needs[].providers[]": {grants: func(a at) []fact {
		return one(Right{"node/" + shown(a.v), "provide", shown(a.up[0]["kind"])})
	}},
	"manifest.needs[].deliver.owner":         {grants: owner},
	"manifest.needs[].deliver.files.*.value": {why: "part of what is read"},
	"manifest.needs[].deliver.files.*.mode":  {grants: files},
	"manifest.needs[].onChange[]":            {grants: func(a at) []fact { return one(Right{a.node(), "restart", shown(a.v)}) }},
	"manifest.needs[].renew.atPercent":       {why: "of a lifetime, which is a right"},
	"manifest.needs[].renew":                 {deeper: true, grants: renewal},
	"manifest.needs[].renew.interval":        {why: "part of how often it is fetched"},
	"manifest.needs[].renew.rotate":          {why: "part of how often it is fetched"},
	"manifest.needs[].renew.staleAfter":      {why: "when an alarm is raised: what is in force stays"},

	"manifest.forwarder.listen[]": {grants: func(a at) []fact {
		return one(Right{"anyone", "connect to", "the forwarder of " + a.host() + " at " + shown(a.v)}, join(a.node()))
	}},
	"manifest.forwarder.transport":                     {why: "that anyone may connect to the address is a right, whatever over"},
	"manifest.forwarder.drain":                         {why: "an older process closes what a new list denies, as the newest does"},
	"manifest.forwarder.publish[].id":                  {why: "part of who reaches it and where it leads"},
	"manifest.forwarder.publish[].port":                {why: "part of who reaches it and where it leads"},
	"manifest.forwarder.publish[].protocol":            {why: "part of where it leads"},
	"manifest.forwarder.publish[].remote":              {why: "its connections are sessions that operators see and end; who connects is decided elsewhere"},
	"manifest.forwarder.publish[].record.recipients[]": {grants: recipient},
	"manifest.forwarder.publish[].record.days":         {why: "of a service, which delta.recordings compares"},
	"manifest.forwarder.publish[].user":                {why: "part of who answers for it"},
	"manifest.forwarder.publish[].upstream":            {grants: upstream},
	"manifest.forwarder.publish[].identity":            {grants: identity},
	"manifest.forwarder.publish[].limits.*":            {grants: serviceLimit},
	"manifest.forwarder.limits[].id":                   {why: "part of whose limits they are"},
	"manifest.forwarder.limits[].limits.*":             {grants: callerLimit},
	"manifest.forwarder.publish[].accessLog":           {grants: accessLog},
	"manifest.forwarder.publish[].allow[].id":          {grants: allow},
	"manifest.forwarder.publish[].allow[].fingerprint": {why: "part of who reaches it"},
	"manifest.forwarder.publish[].allow[].until": {grants: func(a at) []fact {
		return a.ending(Right{a.id(a.up[0]["id"]), "reach", a.port(a.up[1])})
	}},

	"manifest.forwarder.publish[].allow[].logins[].account": {grants: login},
	"manifest.forwarder.publish[].allow[].logins[].until":   {grants: func(a at) []fact { return a.ending(a.loginRight()) }},

	"manifest.forwarder.publish[].latent[].id":       {grants: latent},
	"manifest.forwarder.publish[].latent[].role":     {why: "part of who reaches it while a grant is in force"},
	"manifest.forwarder.publish[].latent[].logins[]": {grants: latentLogin},
	"manifest.forwarder.reach[].latent[]":            {why: "the host that publishes it decides, and has the same entry"},
	"manifest.requests.*.most":                       {grants: grantLength},
	"manifest.requests.*.approvers[].id":             {grants: approver},
	"manifest.requests.*.approvers[].keys[]":         {grants: approvalKey},
	"policy.requests.*.by[]":                         {grants: requester},
	"policy.requests.*.hosts[]":                      {why: "a host applies only grants for what its own manifest has"},
	"policy.requests.*.most":                         {grants: grantLength},
	"policy.requests.*.approvers[].id":               {grants: approver},
	"policy.requests.*.approvers[].keys[]":           {grants: approvalKey},

	"manifest.forwarder.reach[].hostKeys[]": {grants: hostKey},
	"manifest.forwarder.reach[].id":         {why: "part of who reaches it"},
	"manifest.forwarder.reach[].port":       {why: "part of who reaches it"},
	"manifest.forwarder.reach[].protocol":   {why: "the host that publishes it decides"},
	"manifest.forwarder.reach[].remote":     {why: "which client flor remote starts"},
	"manifest.forwarder.reach[].recorded":   {why: "what flor remote tells people; the host that publishes it decides"},
	"manifest.forwarder.reach[].grpc":       {why: "how an ingress passes on what strangers reach anyway"},
	"manifest.forwarder.reach[].listen":     {why: "a loopback address: who connects there is looked up, wherever it is"},
	"manifest.forwarder.reach[].transport":  {why: "the same checks over either"},
	"manifest.forwarder.reach[].endpoints":  {why: "whoever answers there must present the service's identity"},
	"manifest.forwarder.reach[].callers[]": {grants: func(a at) []fact {
		return one(Right{a.id(a.v), "reach", portOf(a.id(a.up[0]["id"]), a.up[0])})
	}},
	"manifest.forwarder.reach[].aliases[]":              {grants: alias},
	"manifest.forwarder.reach[].tlsName":                {grants: publicName},
	"manifest.forwarder.reach[].tlsAliases[]":           {grants: publicName},
	"manifest.forwarder.reach[].ingress.from[]":         {why: comparedByPath},
	"manifest.forwarder.reach[].ingress.paths[].path":   {why: comparedByPath},
	"manifest.forwarder.reach[].ingress.paths[].deny":   {why: comparedByPath},
	"manifest.forwarder.reach[].ingress.paths[].from[]": {why: comparedByPath},
	"manifest.forwarder.reach[].ingress.paths[].port":   {why: comparedByPath},
	"manifest.forwarder.reach[].ingress.hsts":           {why: "what browsers do with a site that they reach anyway"},
	"manifest.forwarder.reach[].ingress.maxBody":        {why: "how much strangers send to what they reach anyway"},
	"manifest.forwarder.reach[].ingress.timeout":        {why: "how long an ingress waits for what strangers reach anyway"},
	"manifest.forwarder.reach[].gate.need":              {grants: groupsBehind},
	"manifest.forwarder.reach[].gate.groups":            {grants: groupsBehind},
	"manifest.forwarder.reach[].gate.own":               {why: "part of who signs in"},
	"manifest.forwarder.reach[].gate.session":           {why: "how long people stay signed in who may sign in anyway"},
	"manifest.forwarder.reach[].redirects.*":            {grants: redirect},
	"manifest.forwarder.callers[].id":                   {why: "part of who acts"},
	"manifest.forwarder.callers[].users[]":              {grants: func(a at) []fact { return one(account(a, a.v), a.holds(a.up[0]["id"])) }},
	"manifest.forwarder.callers[].uids[]":               {grants: func(a at) []fact { return one(account(a, a.v), a.holds(a.up[0]["id"])) }},
	"manifest.forwarder.callers[].units[]":              {grants: func(a at) []fact { return one(unit(a, a.v), a.holds(a.up[0]["id"])) }},
	"manifest.forwarder.callers[].workload": {grants: func(a at) []fact {
		return one(Right{"who acts as " + a.id(a.up[0]["id"]) + " on " + a.host(), "have", "its key, by the Workload API"}, a.holds(a.up[0]["id"]))
	}},
	"manifest.forwarder.reach[].via[].by[]":   {why: "who talks through a relay is a right at the relay"},
	"manifest.forwarder.reach[].via[].label":  {why: "part of the path, which is a right at the relay"},
	"manifest.forwarder.reach[].opaqueName":   {why: "what handshakes call a service that is checked by its identity"},
	"manifest.forwarder.publish[].opaqueName": {why: "what handshakes call a service that is checked by its identity"},

	"manifest.forwarder.relays.*.id":           {grants: relayFor},
	"manifest.forwarder.relays.*.addresses":    {why: "whoever answers there must present the relay's identity"},
	"manifest.forwarder.relays.*.transport":    {why: "the same checks over either"},
	"manifest.forwarder.uplinks[]":             {grants: uplink},
	"manifest.forwarder.meet":                  {grants: meets},
	"manifest.forwarder.relay":                 {grants: relaying, deeper: true},
	"manifest.forwarder.relay.id":              {why: "its certificate is a right"},
	"manifest.forwarder.relay.routes[].label":  {why: "part of who talks through it"},
	"manifest.forwarder.relay.routes[].to":     {why: "part of who talks through it"},
	"manifest.forwarder.relay.routes[].next":   {why: "the next relay decides where it leads"},
	"manifest.forwarder.relay.routes[].from[]": {grants: talk},
	"manifest.forwarder.relay.limits.*":        {grants: relayLimit},

	"manifest.forwarder.publish[].entrances[]":      {grants: states},
	"manifest.forwarder.publish[].gate.ingresses[]": {grants: func(a at) []fact { return tells(a.id(a.v), a.port(a.up[1])) }},
	"manifest.forwarder.entries[].id":               {grants: enters},
	"manifest.forwarder.entries[].listen":           {why: "part of who comes in"},
	"manifest.forwarder.entries[].protocol":         {why: "part of who comes in"},
	"manifest.forwarder.entries[].port":             {why: "part of who comes in"},
	"manifest.forwarder.entries[].serverNames":      {why: "part of who comes in"},
	"manifest.forwarder.entries[].from":             {why: "part of who comes in"},
	"manifest.forwarder.entries[].outside":          {why: "part of who comes in"},
	"manifest.forwarder.entries[].caller":           {why: "part of who comes in"},
	"manifest.forwarder.entries[].announce":         {why: "the host that publishes it decides whose word it takes"},
	"manifest.forwarder.entries[].accessLog":        {grants: entryLog},
	"manifest.forwarder.entries[].limits.*":         {grants: entryLimit},

	"manifest.forwarder.socks[].listen": {why: "a loopback address: who connects there is looked up, wherever it is"},
	"manifest.forwarder.socks[].id":     {grants: socks},
})
