# An exception to which the role does not lead, and one of a service that it reaches on other hosts.
{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 8081;
  };
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
  };
  roles.reader = {
    services = [
      "wiki"
      "shell@alpha"
    ];
    except = [
      "blog"
      "shell@beta"
    ];
  };
  roles.other.services = [
    "blog"
    "shell"
  ];
  users.ann.roles = [
    "reader"
    "other"
  ];
}
