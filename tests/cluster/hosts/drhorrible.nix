# The forge: it provides for all the others.
{ on, me }: on 1 { }
