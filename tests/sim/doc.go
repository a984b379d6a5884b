// Package sim is a simulator of fleets: activation and providers in one process, in one bubble of
// virtual time (testing/synctest), on a network in memory. The code under test is real:
// activation.Run, the provider's server with its kinds and its SQLite state, TLS, files. Only the
// network, the crashes of machines, and time are simulated. A story takes days of virtual time and
// runs in seconds:
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
// At the end of a story the faults stop, and these laws must hold, some of them at all times:
//
//	fulfilled  every granted need is fulfilled within Recovery
//	once       an idempotency key has one answer for as long as the answer is valid
//	same       a request without an answer is repeated with the same key
//	whole      the delivered files are exactly one answer, also after each crash
//	key        an SVID belongs to its key and to the requested identity
//	quiet      a need that is fulfilled and not due is not requested, except for documents
//	idle       one more activation requests nothing either
//	rotated    the delivered files are of the requested generation
//	bounded    connections are as rare as backoff demands
//	audit      every answer that a host received is in the audit log, except unchanged documents
//	alone      no host is mistaken for two machines
//	forward    the documents in force never go back
//	disk       activation can read the files that it wrote
//
// A seed determines the faults: the fate of a host's n-th connection, the moment in its n-th life
// at which a process dies, and all random choices of a story. It does not determine keys, jitter,
// or the order of simultaneous events. A replay therefore has the same faults, but not always the
// same states:
//
//	go test ./tests/sim -run TestKillStorm -sim.seed 7
//	go test ./tests/sim -sim.runs 100
//
// A seed that fails prints the command to replay it, and the log.
package sim
