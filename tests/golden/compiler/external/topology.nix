# A program outside the cluster is a service of the hosts that connect to it: a printer in the
# office, and a database that two hosts may use.
{ base, merge, ... }:
merge base {
  services = {
    printer = {
      host = "beta";
      port = 631;
      upstream = "192.0.2.77:631";
    };
    ledger = {
      hosts = [
        "alpha"
        "beta"
      ];
      listenPort = 5432;
      upstream = "db.example.org:5432";
    };
    six = {
      host = "beta";
      listenPort = 80;
      upstream = "[2001:db8::77]:8080";
    };
  };
  roles.reader.services = [
    "wiki"
    "printer"
    "ledger"
    "six"
  ];
}
