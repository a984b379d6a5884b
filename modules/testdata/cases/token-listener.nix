# The pages of the issuer of JWT-SVIDs have an address that no other cluster on the host may have.
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
    provider = {
      inherit usersFile;
      settings.oidc.listen = "127.0.0.1:5557";
    };
  };
  services.florete_blue = {
    cluster = further {
      hosts.drhorrible.providerPort = 4620;
      services.tokens = {
        host = "drhorrible";
        port = 5557;
        listenPort = 80;
      };
      roles.node.services = [ "tokens" ];
      providers.jwt = {
        hosts = [ "drhorrible" ];
        issuer = "http://tokens.blue.flor.rete";
      };
    };
    provider = {
      inherit usersFile;
      settings.oidc.listen = "127.0.0.1:5558";
    };
  };
}
