package transport

import "net/netip"

// Order is in which order addresses are tried.
func (p *Pool) Order(r Route) []string { return p.order(r) }

// Sort is the same of what one of them led to.
func (p *Pool) Sort(r Route, found []netip.AddrPort) []netip.AddrPort { return p.sort(r, found) }
