# A small valid topology: alpha provides, beta publishes.
{ key }: {
  serial = 1;
  rev = "golden";
  name = "golden";
  trustDomain = "golden.flor";
  trust = {
    roots = [ "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n" ];
    signingKeys = [ "golden-1:XCy7rhw63wRQyvwr3R1VkY5GBuQyEG/dv/+xh5K2B8c=" ];
  };
  hosts = {
    alpha = {
      address = "192.0.2.1";
      sshHostKey = key "alpha";
    };
    beta = {
      address = "192.0.2.2";
      sshHostKey = key "beta";
      users = [ "ann" ];
    };
  };
  services.wiki = {
    host = "beta";
    port = 8080;
  };
  users.ann.roles = [ "reader" ];
  roles = {
    node.serviceGroups = [ "control-plane" ];
    operator.serviceGroups = [
      "control-plane"
      "control-plane-write"
    ];
    reader.services = [ "wiki" ];
  };
  serviceGroups = {
    control-plane = [ ];
    control-plane-write = [ ];
  };
  providers.cert.hosts = [ "alpha" ];
}
