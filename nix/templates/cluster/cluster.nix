{
  name = "example";
  trustDomain = "example.flor";
  trust = {
    # Replace it with your own: florctl ca init --trust-domain example.flor --out ~/example
    # and copy ca.crt here; ca.key stays out of this repository, offline.
    roots = [ ./ca.crt ];
    # And this: (umask 077; nix key generate-secret --key-name example-1 > ~/example/signing.key)
    # and nix key convert-secret-to-public < ~/example/signing.key
    signingKeys = [ "example-1:vFnFXLhfOF9Dc66k73OfJtXJrfOs4QdlA7PxvUsbLAM=" ];
  };
  providers = {
    cert.hosts = [ "forge" ];
    config.hosts = [ "forge" ];
  };
}
