// Package testserver finds or starts the servers that tests need. A fake proves
// nothing about atomicity, so the tests of stores run against real ones.
//
//	func TestMain(m *testing.M) { testserver.Main(m) }
//
//	func TestStore(t *testing.T) {
//		url := testserver.Postgres(t)        // shared by the tests of a package
//		own := testserver.StartPostgres(t)   // to be killed, paused and restarted
//	}
//
// A shared server is the one that SUBMITONCE_TEST_POSTGRES_URL or
// SUBMITONCE_TEST_REDIS_URL names; else one started from a local binary on a free
// port in a temporary folder; else one in Docker. If there is none of them the
// test fails and says what to install. What was started dies with the process.
//
// Functions that begin with New take no test, for programs that are none.
package testserver
