// Package sim tests fleets of hosts and providers by simulation. A fleet runs in one process, in a
// bubble of virtual time (testing/synctest). Only the network, the crashes of machines and time are
// simulated. The tested code is real: activation.Run, the provider's server with its kinds and its
// SQLite state, TLS and files. A test is a story that takes days of virtual time and runs in
// seconds:
//
//	sim.Run(t, sim.Config{Hosts: 5}, func(f *sim.Fleet) {
//		f.Deaths(20, 5) // of hosts and providers, at random moments
//		f.Up()
//		f.Boot()
//		f.Rotate()
//		f.Publish(f.Providers...)
//		f.Sleep(time.Hour)
//	})
//
// At the end of a story the faults stop. The following laws must then hold, and some of them must
// hold at all times:
//
//	fulfilled  every granted need is fulfilled within Recovery
//	once       an idempotency key has one answer for as long as the provider repeats it
//	same       a request without an answer is repeated with the same key
//	whole      the delivered files are exactly one answer, also after each crash
//	key        an SVID or SSH certificate belongs to its key and to the requested identity
//	quiet      a need that is fulfilled and not due is not requested, except for documents
//	idle       one more activation requests nothing either
//	rotated    the delivered files are of the requested generation
//	bounded    connections are as rare as backoff demands
//	audit      every answer that a host received is in the audit log, except unchanged documents
//	alone      no host is mistaken for two machines
//	forward    the documents in force never go back
//	disk       activation can read the files that it wrote
//
// A seed determines the faults. They are the faults of each connection of a host, the moment at
// which a process dies in each of its lives, and all random choices of a story. The seed does not
// determine keys, jitter, or the order of simultaneous events. A replay therefore has the same
// faults, but not always the same states:
//
//	go test ./tests/sim -run TestKillStorm -sim.seed 7
//	go test ./tests/sim -sim.runs 100
//
// If a story fails, the test prints the log and the command that replays the seed.
package sim
