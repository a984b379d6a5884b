# Two clusters on one host cannot have the same listener.
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
      trustDomain = "demo.flor";
      hosts.drhorrible = {
        forwarderPort = 4610;
        providerPort = 4600;
      };
    };
    provider = { inherit usersFile; };
  };
}
