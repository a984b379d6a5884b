# A host that provides certificates, documents and sign-in.
{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = flake;
    hostName = "drhorrible";
    host.openFirewall = true;
    provider = {
      usersFile = "/run/keys/users.hujson";
      settings.cert.issuingCertificate = "/etc/florete/issuing.crt";
    };
  };
}
