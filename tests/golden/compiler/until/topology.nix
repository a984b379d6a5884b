# Roles up to a time: of a user, by teams, of a service, and to operate. What another role gives
# for good has no end, of two ends the later counts, and what has ended is not there.
{ base, merge, ... }:
merge base {
  serial = 1800000000;
  hosts.beta.users = [
    "ann"
    "ben"
    "cleo"
    "dora"
  ];
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
  };
  services.job = {
    host = "alpha";
    port = 9000;
    user = "job";
    until.chief = "2027-01-31T12:00Z";
  };
  roles.reader.services = [ "wiki" ];
  roles.chief.services = [
    "job"
    "shell@beta"
    "wiki"
  ];
  users = {
    ann = {
      roles = [ "reader" ];
      until.chief = "2027-01-31";
    };
    ben.until.reader = "2027-01-15T07:59Z";
    cleo.until.chief = "2027-02-28";
    dora = {
      roles = [ "looker" ];
      until.operator = "2027-03-01";
    };
  };
  roles.looker.serviceGroups = [ "control-plane" ];
  teams.night = {
    users = [ "cleo" ];
    until.chief = "2028-02-29";
  };
  providers.config.hosts = [ "alpha" ];
}
