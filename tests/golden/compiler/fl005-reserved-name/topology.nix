{ base, merge, ... }:
merge base {
  services = {
    florete-cache = {
      host = "beta";
      port = 3;
    };
    florete-control = {
      host = "beta";
      port = 2;
    };
    florete-provider-oidc = {
      host = "beta";
      port = 1;
    };
  };
  roles.reader.services = [
    "florete-cache"
    "florete-control"
  ];
  serviceGroups.control-plane = [ "florete-control" ];
}
