# A program that listens on all addresses of a host leaves its port to no other cluster.
{
  flake,
  further,
  instance,
  modules,
  ...
}:
let
  usersFile = "/run/keys/users.hujson";
in
{
  imports = [
    modules.default
    (instance "blue")
  ];
  networking.hostName = "drhorrible";
  services.florete = {
    cluster = flake;
    provider = { inherit usersFile; };
  };
  services.florete_blue = {
    cluster = further {
      trustDomain = "blue.flor";
      hosts.drhorrible = {
        bind = [ ];
        forwarderPort = 4610;
        providerPort = 4600;
      };
    };
    provider = {
      inherit usersFile;
      settings.oidc.listen = "127.0.0.1:5557";
    };
  };
}
