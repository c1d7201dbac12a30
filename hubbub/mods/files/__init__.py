"""The mod `files`: files attached to messages and stored next to the log.

mod          operations, attachments of messages
schemas      inputs and outputs
uploads      settings; uploads in parts, within quotas
repository   tables, permissions, and contents in a folder, by checksum
media_types  validation of names and types
reader       text of files, with limits for archives and office documents
pdf_worker   text of a PDF, in a separate process
"""
