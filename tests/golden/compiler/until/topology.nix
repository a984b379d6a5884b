# Roles with an end: for a user, by teams, for a service, and for operators. A role that is also
# given without an end has none, the later of two ends applies, and ended roles are absent.
{ base, merge, ... }:
merge base {
  serial = 1800000000;
  hosts.beta.users = [
    "ann"
    "ben"
    "cleo"
    "dora"
    "eve"
    "fay"
    "gus"
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
    cleo.until.chief = "2027-02-28T00:00:00Z";
    eve.roles = [ ];
    fay.roles = [ ];
    gus.roles = [ "reader" ];
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
  # Eve also gets it from the team above, fay is a permanent member of another team, and the
  # membership of gus has ended.
  teams.visitors.usersUntil = {
    eve = "2027-04-01";
    fay = "2027-04-01";
    gus = "2027-01-15T07:59Z";
  };
  teams.readers = {
    teams = [ "visitors" ];
    users = [ "fay" ];
    roles = [ "reader" ];
    until.chief = "2027-05-01";
  };
  hosts.alpha.until.reader = "2027-06-01";
  hosts.beta.group = "eu/fra";
  hosts.beta.roles = [ "chief" ];
  hosts.beta.until.looker = "2027-06-01";
  hostGroups.eu.until = {
    chief = "2027-06-01";
    looker = "2027-07-01";
  };
  hostGroups."eu/fra".until.reader = "2027-08-01";
  providers.config.hosts = [ "alpha" ];
}
